#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace rekernel::testing {

/// What a server shows, and the key that proves it; both as PEM.
struct Certificate {
  std::string pem;
  std::string key;
};

/// A certificate authority that nobody has heard of.
class Authority {
 public:
  Authority();
  /// What clients need to believe it.
  std::string pem() const;
  /// For a server at this IP address, valid for an hour.
  Certificate certify(const std::string& address) const;

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Signed = std::unique_ptr<X509, Free>;

  static Signed make(const Key& key, const X509* issuer, const Key& issuer_key,
                     const std::string& constraints, const std::string& names);

  Key key_;
  Signed certificate_;
};

}  // namespace rekernel::testing
