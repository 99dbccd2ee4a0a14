"""Secrets that stand in AWS Secrets Manager."""

from app.adapters.aws_client import RETRY_AFTER, AwsClients, AwsRefused


class SecretsManager:
    """Reads secrets. Nothing is imported or connected before the first read, and nothing is kept after it."""

    def __init__(self, aws: AwsClients | None = None) -> None:
        self._aws = aws or AwsClients()

    def forget(self) -> None:
        """Drop the connection and the credentials, as after a SnapStart restore."""
        self._aws.forget()

    def read(self, secret_id: str) -> str:
        """The text of the current version of a secret, by ARN or name.

        Raises Unavailable, and AwsRefused where a grant or the secret itself is missing.
        """
        response = self._aws.call(
            "secretsmanager",
            "get_secret_value",
            SecretId=secret_id,
            VersionStage="AWSCURRENT",
            remedies={
                "ResourceNotFoundException": f"there is no secret {secret_id} with a value: create it and give it "
                "one, or correct the setting that names it",
                "AccessDeniedException": f"the role lacks secretsmanager:GetSecretValue on {secret_id}, or "
                "kms:Decrypt on the key that it is encrypted with: grant it",
                "DecryptionFailure": f"the key that {secret_id} is encrypted with cannot be used: enable it, or "
                "encrypt the secret with another one",
                "InvalidRequestException": f"{secret_id} is being deleted: restore it",
                "ValidationException": f"{secret_id!r} is no name or ARN of a secret: correct the setting",
            },
        )
        text = response.get("SecretString")
        if not isinstance(text, str):
            raise AwsRefused(
                f"secretsmanager: {secret_id} holds bytes: store it as text (SecretString)", retry_after=RETRY_AFTER
            )
        return text
