// Stands for the recorder where there is no CUDA: the notes as they come, and for each recorded
// call the lines of the file that FAKE_CALLS names with the call's number after it.

#include <cstdlib>
#include <fstream>
#include <string>

namespace {

std::ofstream log() {
  const char* folder = std::getenv("REKERNEL_CAPTURE_LOGS");
  return std::ofstream(std::string(folder ? folder : ".") + "/7.log", std::ios::app);
}

int call = 0;

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
