#include "tests/replay/model/certificates.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <stdexcept>

namespace rekernel::testing {
namespace {

void check(bool good) {
  if (!good) throw std::runtime_error("OpenSSL made no certificate");
}

/// What `write` puts into a file of PEM.
template <class Write>
std::string pem_text(const Write& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), &BIO_free);
  check(write(memory.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

void extend(X509* certificate, int kind, const std::string& value) {
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()), &X509_EXTENSION_free);
  check(extension && X509_add_ext(certificate, extension.get(), -1) == 1);
}

}  // namespace

Authority::Authority()
    : key_(EVP_EC_gen("P-256")), certificate_(make(key_, nullptr, key_, "critical,CA:TRUE", "")) {}

Authority::Signed Authority::make(const Key& key, const X509* issuer, const Key& issuer_key,
                                  const std::string& constraints, const std::string& names) {
  Signed made(X509_new());
  X509* const one = made.get();
  check(one && key && X509_set_version(one, 2) == 1);
  ASN1_INTEGER_set(X509_get_serialNumber(one), issuer ? 2 : 1);
  X509_gmtime_adj(X509_getm_notBefore(one), -3600);
  X509_gmtime_adj(X509_getm_notAfter(one), 3600);
  check(X509_set_pubkey(one, key.get()) == 1);
  const char* const name = issuer ? "a server" : "an authority";
  X509_NAME* const subject = X509_get_subject_name(one);
  check(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(name), -1, -1, 0) == 1);
  check(X509_set_issuer_name(one, issuer ? X509_get_subject_name(issuer) : subject) == 1);
  extend(one, NID_basic_constraints, constraints);
  if (!names.empty()) extend(one, NID_subject_alt_name, names);
  check(X509_sign(one, issuer_key.get(), EVP_sha256()) > 0);
  return made;
}

std::string Authority::pem() const {
  return pem_text([&](BIO* to) { return PEM_write_bio_X509(to, certificate_.get()); });
}

Certificate Authority::certify(const std::string& address) const {
  const Key key(EVP_EC_gen("P-256"));
  const Signed made = make(key, certificate_.get(), key_, "CA:FALSE", "IP:" + address);
  return {pem_text([&](BIO* to) { return PEM_write_bio_X509(to, made.get()); }),
          pem_text([&](BIO* to) {
            return PEM_write_bio_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace rekernel::testing
