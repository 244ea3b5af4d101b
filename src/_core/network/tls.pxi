"""Owns: creation of a consumer's TlsClient from its `ssl.` properties; the only module that links OpenSSL's TLS.

thread: A (N uses the client). Never: is loaded by a consumer without TLS, keeps a Python object, knows a default.
"""


cdef extern from "network/openssl_client.hpp" namespace "kc" nogil:
    cdef cppclass TlsConfig:
        string ca_location
        string ca_pem
        string certificate_location
        string certificate_pem
        string key_location
        Secret key_pem
        Secret key_password
        string keystore_location
        Secret keystore_password
        string crl_location
        string cipher_suites
        string curves
        string sigalgs
        string protocols
        bint verify
        bint verify_host
        bint has_key_password
        bint has_keystore_password

cdef extern from *:
    """
    #include "network/openssl_client.hpp"

    // Moves the contents of `config` to a new client. Returns null and sets `why` if the credentials are not usable.
    static std::shared_ptr<kc::TlsClient>* open_tls_client(kc::TlsConfig& config, kc::Status* why) {
      auto made = std::make_shared<kc::OpensslClient>(std::move(config));
      *why = made->load();
      return why->ok() ? new std::shared_ptr<kc::TlsClient>(std::move(made)) : nullptr;
    }
    """
    TlsClientPtr* open_tls_client(TlsConfig& config, Status* why) nogil


cdef const char* CAPSULE = b"kconsumer.TlsClient"
cdef str SURROGATES = "surrogateescape"  # for file names that are not valid UTF-8


cdef void drop_client(object capsule) noexcept:
    cdef TlsClientPtr* client = <TlsClientPtr*>PyCapsule_GetPointer(capsule, CAPSULE)
    del client


cdef string text(value):
    cdef bytes raw = b"" if value is None else value.encode("utf-8", SURROGATES)
    return string(<const char*>raw, <size_t>len(raw))


def open_client(options not None):
    """Create a client and return a capsule with it.

    The capsule contains a heap-allocated shared_ptr; the network keeps a copy.

    Args:
        options: kconsumer.config.tls.TlsOptions, already validated except for the contents of files.

    Raises:
        ValueError: a file cannot be read or is not usable; the text names property and file.
    """
    cdef TlsConfig config
    cdef TlsClientPtr* made
    cdef Status why
    config.ca_location = text(options.ca_location)
    config.ca_pem = text(options.ca_pem)
    config.certificate_location = text(options.certificate_location)
    config.certificate_pem = text(options.certificate_pem)
    config.key_location = text(options.key_location)
    put_secret(&config.key_pem, options.key_pem or "", SURROGATES)
    put_secret(&config.key_password, options.key_password or "", SURROGATES)
    config.has_key_password = options.key_password is not None
    config.keystore_location = text(options.keystore_location)
    put_secret(&config.keystore_password, options.keystore_password or "", SURROGATES)
    config.has_keystore_password = options.keystore_password is not None
    config.crl_location = text(options.crl_location)
    config.cipher_suites = text(options.cipher_suites)
    config.curves = text(options.curves)
    config.sigalgs = text(options.sigalgs)
    config.protocols = text(options.protocols)
    config.verify = options.verify
    config.verify_host = options.verify_host
    with nogil:
        made = open_tls_client(config, &why)
    if made == NULL:
        raise ValueError(why.detail.data()[:why.detail.size()].decode("utf-8", "surrogateescape"))
    return PyCapsule_New(made, CAPSULE, drop_client)
