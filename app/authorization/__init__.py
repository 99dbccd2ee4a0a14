"""Who may call us: an OAuth 2.1 resource server for JWT access tokens. No I/O but through a port."""
