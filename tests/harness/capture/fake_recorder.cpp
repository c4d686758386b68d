// Stands for the recorder where there is no CUDA: the notes as they come, and for each recorded
// call the lines of the file that FAKE_CALLS names with the call's number after it. Marks of a
// program without Python are answered by the recorder's own part for them; FAKE_MODULE names a
// module that was loaded, and FAKE_BYTES says how much memory there is from each address on.

#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "harness/capture/recorder_marks.h"

namespace {

std::ofstream log() {
  const char* folder = std::getenv("REKERNEL_CAPTURE_LOGS");
  return std::ofstream(std::string(folder ? folder : ".") + "/7.log", std::ios::app);
}

int call = 0;

std::string text_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? text : "";
}

void load_module() {
  const std::string path = text_of("FAKE_MODULE");
  if (path.empty()) return;
  std::ifstream module(path, std::ios::binary);
  std::ofstream(text_of("REKERNEL_CAPTURE_LOGS") + "/1091.1.module", std::ios::binary)
      << module.rdbuf();
  log() << R"({"event":"module","id":1,"bytes":9,"file":"1091.1.module"})"
        << "\n";
}

}  // namespace

extern "C" void rekernel_note(const char* json) {
  log() << R"({"event":"note","note":)" << json << "}\n";
}

extern "C" void rekernel_record(int on) {
  const char* calls = std::getenv("FAKE_CALLS");
  if (!on || !calls) return;
  std::ifstream lines(calls + std::to_string(++call));
  log() << lines.rdbuf();
}

namespace {

void start_marks_once() {
  const std::string samples = text_of("REKERNEL_CAPTURE_MARKS");
  if (samples.empty() || rekernel_recorder::marks_are_on()) return;
  rekernel_recorder::start_marks(
      {.write_note = [](const std::string& json) { rekernel_note(json.c_str()); },
       .write_time = [](bool, std::int64_t) {},
       .bytes_from = [](std::uint64_t) -> std::int64_t {
         const std::string bytes = text_of("FAKE_BYTES");
         return bytes.empty() ? std::int64_t{1} << 30 : std::stoll(bytes);
       },
       .record = [](bool on) { rekernel_record(on ? 1 : 0); }},
      std::stoi(samples));
  load_module();
}

}  // namespace

extern "C" void rekernel_begin(const char* name, ...) {
  start_marks_once();
  if (!rekernel_recorder::marks_are_on()) return;
  std::va_list rest;
  va_start(rest, name);
  rekernel_recorder::mark_begin(name, rest);
  va_end(rest);
}

extern "C" void rekernel_end(const char*, ...) { rekernel_recorder::mark_end(); }

extern "C" void rekernel_count_calls(const char* none, ...) {
  start_marks_once();
  std::va_list rest;
  va_start(rest, none);
  *va_arg(rest, int*) = rekernel_recorder::marked_calls();
  va_end(rest);
}
