"""What runs the functions: the AWS templates next to template.yaml, and the local stand-ins for AWS."""
