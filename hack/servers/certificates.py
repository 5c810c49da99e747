"""A certificate authority for one control plane, made anew each time and trusted by nobody else."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from servers.files import write_private

_LIFETIME = dt.timedelta(days=30)
# A virtual machine's clock may jump back a little after the certificates are made.
_LEEWAY = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs what one control plane needs, and writes it into one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("hedgerow-throwaway-ca")
        certificate = (
            _builder(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = _write(folder / "ca.crt", certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, common_name: str) -> KeyPair:
        """Issue a certificate for a server on loopback."""
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return self._issue(_name(common_name), common_name, ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, common_name: str, group: str) -> KeyPair:
        """Issue a certificate for a Kubernetes user of one group."""
        return self._issue(_name(common_name, group), common_name, ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def _issue(
        self, subject: x509.Name, file_name: str, usage: x509.ObjectIdentifier, names: list[x509.GeneralName]
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._name, key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        return KeyPair(
            certificate=_write(self._folder / f"{file_name}.crt", pem),
            key=_write(self._folder / f"{file_name}.key", _private_pem(key)),
        )


def service_account_key(folder: Path) -> Path:
    """Make the key that signs service-account tokens; the API server derives the public half from it."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return _write(folder / "service-accounts.key", _private_pem(key))


def _name(common_name: str, group: str | None = None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if group is not None:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(attributes)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _LEEWAY)
        .not_valid_after(now + _LIFETIME)
    )


def _private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes) -> Path:
    return write_private(path, content.decode())
