#include "harness/compile/cubin.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace rekernel {
namespace {

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A record with a payload.
std::string record(unsigned char kind, const std::string& payload) {
  std::string bytes = {4, static_cast<char>(kind)};
  append(bytes, static_cast<std::uint16_t>(payload.size()));
  return bytes + payload;
}

std::string numbers(std::initializer_list<std::uint32_t> values) {
  std::string bytes;
  for (const std::uint32_t value : values) append(bytes, value);
  return bytes;
}

std::string parameter(std::uint16_t ordinal, std::uint16_t offset, std::uint32_t size) {
  return record(
      0x17, numbers({0, ordinal | static_cast<std::uint32_t>(offset) << 16, size << 18 | 0x1f000}));
}

struct TestSection {
  std::string name;
  std::uint32_t type = SHT_PROGBITS;
  std::string content;
  std::uint64_t size_in_memory = 0;  ///< of a section without bytes
  std::uint32_t link = 0;
};

/// An ELF file with these sections after the null section and before the names.
std::string elf(std::vector<TestSection> sections) {
  sections.insert(sections.begin(), TestSection{"", SHT_NULL});
  sections.push_back({".shstrtab", SHT_STRTAB});
  std::string names;
  std::vector<std::uint32_t> name_offsets;
  for (const TestSection& section : sections) {
    name_offsets.push_back(static_cast<std::uint32_t>(names.size()));
    names += section.name + '\0';
  }
  sections.back().content = names;

  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = EM_CUDA;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<std::uint16_t>(sections.size());
  header.e_shstrndx = static_cast<std::uint16_t>(sections.size() - 1);
  std::string body;
  std::string table;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    Elf64_Shdr entry = {};
    entry.sh_name = name_offsets[i];
    entry.sh_type = sections[i].type;
    entry.sh_offset = sizeof header + body.size();
    entry.sh_size =
        sections[i].type == SHT_NOBITS ? sections[i].size_in_memory : sections[i].content.size();
    entry.sh_link = sections[i].link;
    append(table, entry);
    body += sections[i].content;
  }
  header.e_shoff = sizeof header + body.size();
  std::string file;
  append(file, header);
  return file + body + table;
}

/// Two kernels and a function that is none, as the compiler writes them.
std::vector<TestSection> two_kernels() {
  const std::string names = std::string("\0scale\0add\0helper\0", 18);
  const auto symbol = [](std::uint32_t name, unsigned char other) {
    Elf64_Sym entry = {};
    entry.st_name = name;
    entry.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    entry.st_other = other;
    return entry;
  };
  std::string symbols;
  append(symbols, Elf64_Sym{});
  append(symbols, symbol(1, 0x10));
  append(symbols, symbol(7, 0x10));
  append(symbols, symbol(11, 0));
  const std::string odd_records = {1, 0x41, 0, 0, 2, 0x4c, 1, 0, 3, 0x1b, 0, 0x40};
  return {
      {".strtab", SHT_STRTAB, names},
      {".symtab", SHT_SYMTAB, symbols, 0, 1},
      {".nv.info", SHT_LOPROC,
       record(0x2f, numbers({1, 40})) + record(0x2f, numbers({2, 255})) +
           record(0x11, numbers({1, 16})) + record(0x12, numbers({1, 48})) +
           record(0x11, numbers({2, 0})) + record(0x2f, numbers({3, 7}))},
      {".nv.info.scale", SHT_LOPROC,
       odd_records + parameter(2, 64, 128) + parameter(1, 8, 4) + parameter(0, 0, 8)},
      {".nv.info.add", SHT_LOPROC, ""},
      {".nv.info.helper", SHT_LOPROC, record(0x17, "short")},
      {".nv.shared.scale", SHT_NOBITS, "", 1280},
  };
}

TEST(Cubin, ReadsKernelsAndParameters) {
  const auto kernels = read_cubin(elf(two_kernels()));
  ASSERT_TRUE(kernels.ok()) << kernels.error().message;
  ASSERT_EQ(kernels->size(), 2u);
  const KernelResources& add = kernels->at(0);
  EXPECT_EQ(add.name, "add");
  EXPECT_EQ(add.registers, 255);
  EXPECT_EQ(add.stack_bytes, 0);
  EXPECT_EQ(add.static_shared_bytes, 0);
  EXPECT_TRUE(add.parameters.empty());
  const KernelResources& scale = kernels->at(1);
  EXPECT_EQ(scale.name, "scale");
  EXPECT_EQ(scale.registers, 40);
  EXPECT_EQ(scale.stack_bytes, 48);
  EXPECT_EQ(scale.static_shared_bytes, 1280);
  ASSERT_EQ(scale.parameters.size(), 3u);
  EXPECT_EQ(scale.parameters[0].size, 8);
  EXPECT_EQ(scale.parameters[1].offset, 8);
  EXPECT_EQ(scale.parameters[1].size, 4);
  EXPECT_EQ(scale.parameters[2].offset, 64);
  EXPECT_EQ(scale.parameters[2].size, 128);
}

TEST(Cubin, AKernelsNameIsOne) {
  const auto named = [](const std::string& name) {
    std::vector<TestSection> sections = two_kernels();
    sections[0].content = '\0' + name + '\0' + "add" + '\0' + "helper" + '\0';
    std::string symbols = sections[1].content;
    const auto place = [&](std::size_t symbol, std::size_t at) {
      const auto offset = static_cast<std::uint32_t>(at);
      std::memcpy(symbols.data() + symbol * sizeof(Elf64_Sym), &offset, sizeof offset);
    };
    place(1, 1);
    place(2, name.size() + 2);
    place(3, name.size() + 6);
    sections[1].content = symbols;
    return read_cubin(elf(sections));
  };
  EXPECT_TRUE(named("_Z5scale$v1.2"));
  for (const char* odd : {"\x1b[2Kpassed", "\xff", "two words", "a\nb", "k\xc2\x9b"}) {
    EXPECT_FALSE(named(odd)) << odd;
  }
  EXPECT_EQ(named("\x1b[31m").error().message,
            "the machine code has a kernel \"?[31m\"; expected a name of at most 4096 letters, "
            "digits, _, $ and .");
  EXPECT_LT(named(std::string(80u << 20, 'k')).error().message.size(), 200u);
}

TEST(Cubin, RefusesWhatIsNone) {
  const std::string message = "the compiler's output is not a cubin that can be read";
  EXPECT_EQ(read_cubin("").error().message, message);
  EXPECT_EQ(read_cubin("\x7f"
                       "ELF")
                .error()
                .message,
            message);
  EXPECT_EQ(read_cubin(std::string(1000, 'x')).error().message, message);
  std::string host = elf(two_kernels());
  host[offsetof(Elf64_Ehdr, e_machine)] = EM_X86_64;
  EXPECT_FALSE(read_cubin(host).ok());
}

TEST(Cubin, RefusesDamagedRecords) {
  const auto with_info = [](const std::string& content) {
    std::vector<TestSection> sections = two_kernels();
    sections[3].content = content;
    return read_cubin(elf(sections)).ok();
  };
  EXPECT_TRUE(with_info(parameter(0, 0, 8)));
  EXPECT_FALSE(with_info(parameter(1, 0, 8)));                       // the first is missing
  EXPECT_FALSE(with_info(parameter(0, 0, 8) + parameter(0, 8, 8)));  // twice
  EXPECT_FALSE(with_info(record(0x17, numbers({0, 0}))));            // too short
  EXPECT_FALSE(with_info(parameter(0, 0, 8).substr(0, 15)));         // cut off
  EXPECT_FALSE(with_info(std::string("\x04\x17", 2)));               // cut off
  EXPECT_FALSE(with_info(std::string("\x04\x17\xff\xff", 4)));       // longer than the section
  EXPECT_FALSE(with_info(std::string("\x05\x17\0\0", 4)));           // unknown format
}

TEST(Cubin, EveryTruncationAndFlippedByteIsHarmless) {
  const std::string file = elf(two_kernels());
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(read_cubin(std::string_view(file).substr(0, size)).ok()) << size;
  }
  // A flipped byte may pass unnoticed, in a register count say; it must never read out of bounds.
  std::size_t refused = 0;
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (const char flipped : {'\0', '\x01', '\x7f', '\xff'}) {
      std::string damaged = file;
      damaged[i] = flipped;
      refused += !read_cubin(damaged).ok();
    }
  }
  EXPECT_GT(refused, 0u);
}

TEST(AssemblerReport, AddsSpillsAndSharedMemory) {
  std::vector<KernelResources> kernels(2);
  kernels[0].name = "plain";
  kernels[0].static_shared_bytes = 1280;
  kernels[1].name = "spill";
  add_assembler_report(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'spill' for 'sm_90a'\n"
      "ptxas info    : Function properties for spill\n"
      "ptxas         .     1528 bytes stack frame, 1912 bytes spill stores, 2500 bytes spill "
      "loads\n"
      "ptxas info    : Used 64 registers, used 1 barriers, 256 bytes smem, 400 bytes cmem[0]\n"
      "ptxas info    : Function properties for _Z3fooPi\n"
      "ptxas         .     0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info    : Compiling entry function 'unknown' for 'sm_90a'\n"
      "ptxas         .     9 bytes stack frame, 9 bytes spill stores, 9 bytes spill loads\n"
      "ptxas info    : Compiling entry function 'plain' for 'sm_90a'\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 10 registers, used 0 barriers",
      kernels);
  EXPECT_EQ(kernels[0].static_shared_bytes, 0);
  EXPECT_EQ(kernels[0].spill_store_bytes, 0);
  EXPECT_EQ(kernels[1].static_shared_bytes, 256);
  EXPECT_EQ(kernels[1].spill_store_bytes, 1920);
  EXPECT_EQ(kernels[1].spill_load_bytes, 2504);
}

TEST(AssemblerReport, TakesTheAssemblersWordsNotThoseOfAWarningBeforeThem) {
  std::vector<KernelResources> kernels(1);
  kernels[0].name = "k";
  add_assembler_report(
      "kernel.cu(1): warning: \"old\nCompiling entry function 'k'\n7 bytes spill stores\"\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
      "    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n",
      kernels);
  EXPECT_EQ(kernels[0].spill_store_bytes, 8);
  EXPECT_EQ(kernels[0].spill_load_bytes, 4);
}

TEST(AssemblerReport, TakesNoNumberThatNoKernelHas) {
  std::vector<KernelResources> kernels(1);
  kernels[0].name = "k";
  std::string log = "Compiling entry function 'k'\n";
  for (int i = 0; i < 3; ++i) {
    log += "9223372036854775807 bytes spill stores, 99999999999999999999 bytes spill loads\n";
  }
  add_assembler_report(log, kernels);
  EXPECT_EQ(kernels[0].spill_store_bytes, 3 * std::int64_t{INT32_MAX});
  EXPECT_EQ(kernels[0].spill_load_bytes, 3 * std::int64_t{INT32_MAX});
}

}  // namespace
}  // namespace rekernel
