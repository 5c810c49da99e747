"""Keys survive being written down, and mistakes in a configuration are named without showing a secret."""

import hashlib

import pytest

from hedgerow_plans.protocol.keys import (
    generate_private_key,
    key_id,
    parse_private_key,
    parse_public_key,
    parse_trusted_keys,
    private_key_text,
    public_key_text,
)


def test_keys_survive_being_written_down() -> None:
    key = generate_private_key()
    again = parse_private_key(private_key_text(key) + "\n")  # as files end
    public = parse_public_key(public_key_text(key.public_key()))
    public.verify(again.sign(b"hello"), b"hello")


def test_every_generated_key_is_another_one() -> None:
    assert private_key_text(generate_private_key()) != private_key_text(generate_private_key())


def test_the_id_is_the_start_of_the_fingerprint() -> None:
    public = generate_private_key().public_key()
    assert key_id(public) == hashlib.sha256(public.public_bytes_raw()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("text", "problem"), [("secret!", "private key is not base64"), ("c2VjcmV0", "private key has 6 bytes")]
)
def test_a_bad_private_key_is_named_without_being_shown(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        parse_private_key(text)
    assert text not in str(caught.value)


def test_trusted_keys_are_found_by_their_id() -> None:
    keys = [generate_private_key().public_key() for _ in range(2)]
    trusted = parse_trusted_keys({key_id(key): public_key_text(key) for key in keys})
    assert {name: public_key_text(key) for name, key in trusted.items()} == {
        key_id(key): public_key_text(key) for key in keys
    }


def test_a_trusted_key_under_another_name_is_refused_with_the_right_one() -> None:
    key = generate_private_key().public_key()
    with pytest.raises(ValueError, match=f"'operator' has the id '{key_id(key)}'"):
        parse_trusted_keys({"operator": public_key_text(key)})


def test_a_trusted_key_that_is_none_is_refused_with_its_name() -> None:
    with pytest.raises(ValueError, match="Trusted key 'abc': The public key is not base64"):
        parse_trusted_keys({"abc": "?"})
