"""Owns: sign(), the signature of a JWT for Python's token sources. thread: A. Never: keeps a key."""


cdef extern from "network/jws.hpp" namespace "kc" nogil:
    string sign_jws(bint elliptic, const Secret& pem, const Secret* passphrase, const string& data, string* why)


def sign(str algorithm not None, str pem not None, str passphrase, bytes data not None):
    """Return the signature of `data` for a JSON Web Signature, by RS256 or ES256.

    Args:
        pem: the private key.
        passphrase: of the key; None: none.

    Raises:
        ValueError: the key cannot sign; the text continues the name of the key.
    """
    cdef Secret key
    cdef Secret secret
    cdef const Secret* given = NULL
    cdef string why
    cdef string signature
    cdef string signed = string(<const char*>data, <size_t>len(data))
    put_secret(&key, pem, SURROGATES)
    if passphrase is not None:
        put_secret(&secret, passphrase, SURROGATES)
        given = &secret
    signature = sign_jws(algorithm == "ES256", key, given, signed, &why)
    if signature.empty():
        raise ValueError(why.data()[:why.size()].decode())
    return signature.data()[:signature.size()]
