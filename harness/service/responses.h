#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/service/http_server.h"
#include "harness/service/service.h"

namespace rekernel::service {

HttpResponse json_response(int status, std::string body);

/// RFC 9457, with a word for programs.
HttpResponse problem_response(const Refusal& refusal);
HttpResponse bad_request(const std::string& message);

/// 200 once it is answered, 202 before.
HttpResponse view_response(const View& view);
std::string views_json(const std::vector<View>& views);
/// 200 once all are answered, 202 before.
HttpResponse batch_response(const std::string& batch, const std::vector<View>& views);

std::optional<Refusal> refusal_in(const Views& views);

/// Empty where it is missing; the name in lower case.
std::string header_of(const HttpRequest& request, const char* name);

}  // namespace rekernel::service
