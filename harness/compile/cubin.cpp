#include "harness/compile/cubin.h"

#include <elf.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "harness/base/utf8.h"
#include "harness/candidate/code.h"

namespace rekernel {
namespace {

/// Symbols of kernels carry this bit beside the visibility.
constexpr unsigned char entry_function = 0x10;

/// First byte of a record: how its value is stored. Only `sized` is longer than four bytes.
enum RecordFormat : unsigned char { no_value = 1, byte_value = 2, half_value = 3, sized = 4 };

/// Second byte of a record: what it says.
enum RecordKind : unsigned char {
  frame_size = 0x11,      ///< of one function: u32 symbol, u32 bytes
  min_stack_size = 0x12,  ///< the same with all that it calls
  parameter = 0x17,  ///< u32 index, u16 ordinal, u16 offset, u32 flags with the size from bit 18
  register_count = 0x2f,  ///< u32 symbol, u32 registers
};

/// The object at an offset; nothing if it would reach beyond the end.
template <class T>
std::optional<T> read_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

struct Record {
  unsigned char kind = 0;
  std::string_view payload;
};

/// The records of one .nv.info section, or nothing if it is damaged.
std::optional<std::vector<Record>> read_records(std::string_view bytes) {
  std::vector<Record> records;
  while (!bytes.empty()) {
    if (bytes.size() < 4) return std::nullopt;
    const auto format = static_cast<unsigned char>(bytes[0]);
    const auto kind = static_cast<unsigned char>(bytes[1]);
    if (format < no_value || format > sized) return std::nullopt;
    const std::size_t size = format == sized ? *read_at<std::uint16_t>(bytes, 2) : 0;
    if (bytes.size() - 4 < size) return std::nullopt;
    records.push_back({kind, bytes.substr(4, size)});
    bytes.remove_prefix(4 + size);
  }
  return records;
}

struct Section {
  std::string_view name;
  std::string_view content;  ///< empty for sections without bytes in the file
  std::uint64_t size = 0;
  std::uint32_t link = 0;
  std::uint32_t type = 0;
};

/// Zero-terminated text at an offset of a string table.
std::optional<std::string_view> string_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  const std::size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) return std::nullopt;
  return table.substr(offset, end - offset);
}

std::optional<std::vector<Section>> read_sections(std::string_view file) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_CUDA ||
      header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff > file.size()) {
    return std::nullopt;
  }
  std::vector<Elf64_Shdr> headers;
  std::vector<Section> sections;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(file, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return std::nullopt;
    std::string_view content;
    if (section->sh_type != SHT_NOBITS) {
      if (section->sh_offset > file.size() || file.size() - section->sh_offset < section->sh_size) {
        return std::nullopt;
      }
      content = file.substr(section->sh_offset, section->sh_size);
    }
    headers.push_back(*section);
    sections.push_back({{}, content, section->sh_size, section->sh_link, section->sh_type});
  }
  if (header->e_shstrndx >= sections.size()) return std::nullopt;
  const std::string_view names = sections[header->e_shstrndx].content;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const auto name = string_at(names, headers[i].sh_name);
    if (!name) return std::nullopt;
    sections[i].name = *name;
  }
  return sections;
}

/// What a record about a function says: its number by the function's symbol.
using NumberBySymbol = std::map<std::uint32_t, std::int64_t>;

/// Kernel names by symbol number.
std::optional<std::map<std::uint32_t, std::string>> read_kernel_symbols(
    const std::vector<Section>& sections) {
  std::map<std::uint32_t, std::string> kernels;
  for (const Section& section : sections) {
    if (section.type != SHT_SYMTAB) continue;
    if (section.link >= sections.size()) return std::nullopt;
    const std::string_view names = sections[section.link].content;
    const std::size_t count = section.content.size() / sizeof(Elf64_Sym);
    for (std::size_t i = 0; i < count; ++i) {
      const auto symbol = read_at<Elf64_Sym>(section.content, i * sizeof(Elf64_Sym));
      if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !(symbol->st_other & entry_function)) {
        continue;
      }
      const auto name = string_at(names, symbol->st_name);
      if (!name || name->empty()) return std::nullopt;
      kernels[static_cast<std::uint32_t>(i)] = std::string(*name);
    }
  }
  return kernels;
}

/// Parameters in the order of the declaration; nothing if one is missing or there twice.
std::optional<std::vector<KernelParameter>> read_parameters(const std::vector<Record>& records) {
  std::map<std::uint16_t, KernelParameter> by_ordinal;
  for (const Record& record : records) {
    if (record.kind != parameter) continue;
    const auto ordinal = read_at<std::uint16_t>(record.payload, 4);
    const auto offset = read_at<std::uint16_t>(record.payload, 6);
    const auto flags = read_at<std::uint32_t>(record.payload, 8);
    if (!flags) return std::nullopt;
    if (!by_ordinal.insert({*ordinal, {*offset, *flags >> 18}}).second) return std::nullopt;
  }
  std::vector<KernelParameter> parameters;
  for (const auto& [ordinal, entry] : by_ordinal) {
    if (ordinal != parameters.size()) return std::nullopt;
    parameters.push_back(entry);
  }
  return parameters;
}

}  // namespace

Result<std::vector<KernelResources>> read_cubin(std::string_view cubin) {
  const Error damaged{"the compiler's output is not a cubin that can be read"};
  const auto sections = read_sections(cubin);
  if (!sections) return damaged;
  const auto symbols = read_kernel_symbols(*sections);
  if (!symbols) return damaged;

  std::map<std::string, KernelResources> kernels;
  for (const auto& [index, name] : *symbols) {
    // It goes to terminals and records.
    if (!is_kernel_name(name)) {
      return Error{"the machine code has a kernel \"" + one_line(name, 60) +
                   "\"; expected a name of at most " + std::to_string(max_kernel_name) +
                   " letters, digits, _, $ and ."};
    }
    kernels[name].name = name;
  }
  constexpr std::size_t most_kernels = 65536;
  if (kernels.size() > most_kernels) {
    return Error{"the machine code has " + std::to_string(kernels.size()) +
                 " kernels; expected at most " + std::to_string(most_kernels)};
  }

  NumberBySymbol registers, frames, stacks;
  for (const Section& section : *sections) {
    constexpr std::string_view of_kernel = ".nv.info.";
    constexpr std::string_view shared = ".nv.shared.";
    if (section.name == ".nv.info") {
      const auto records = read_records(section.content);
      if (!records) return damaged;
      for (const Record& record : *records) {
        const auto symbol = read_at<std::uint32_t>(record.payload, 0);
        const auto number = read_at<std::uint32_t>(record.payload, 4);
        if (!number) continue;
        if (record.kind == register_count) registers[*symbol] = *number;
        if (record.kind == frame_size) frames[*symbol] = *number;
        if (record.kind == min_stack_size) stacks[*symbol] = *number;
      }
    } else if (section.name.starts_with(of_kernel)) {
      const auto kernel = kernels.find(std::string(section.name.substr(of_kernel.size())));
      if (kernel == kernels.end()) continue;  // a function that is no kernel
      const auto records = read_records(section.content);
      const auto parameters = records ? read_parameters(*records) : std::nullopt;
      if (!parameters) return damaged;
      kernel->second.parameters = *parameters;
    } else if (section.name.starts_with(shared)) {
      const auto kernel = kernels.find(std::string(section.name.substr(shared.size())));
      if (kernel == kernels.end()) continue;
      kernel->second.static_shared_bytes = static_cast<std::int64_t>(
          std::min<std::uint64_t>(section.size, std::numeric_limits<std::int32_t>::max()));
    }
  }
  const auto number = [](const NumberBySymbol& numbers, std::uint32_t symbol) {
    const auto found = numbers.find(symbol);
    return found == numbers.end() ? std::int64_t{0} : found->second;
  };
  for (const auto& [symbol, name] : *symbols) {
    kernels[name].registers =
        static_cast<int>(std::min<std::int64_t>(number(registers, symbol), 255));
    kernels[name].stack_bytes = std::max(number(stacks, symbol), number(frames, symbol));
  }
  std::vector<KernelResources> result;
  for (auto& [name, kernel] : kernels) result.push_back(std::move(kernel));
  return result;
}

std::uint64_t static_device_bytes(std::string_view cubin) {
  const auto sections = read_sections(cubin);
  if (!sections) return 0;
  std::uint64_t bytes = 0;
  for (const Section& section : *sections) {
    const bool counts = section.name == ".nv.global" || section.name == ".nv.global.init";
    // Sizes are not trusted: a sum that overflows is as good as the largest.
    if (counts && __builtin_add_overflow(bytes, section.size, &bytes)) return ~std::uint64_t{0};
  }
  return bytes;
}

Result<ComputeCapability> cubin_capability(std::string_view cubin) {
  const auto header = read_at<Elf64_Ehdr>(cubin, 0);
  if (!header || !read_sections(cubin)) return Error{"is not a cubin that can be read"};
  // From CUDA 13 on, the number stands a byte higher.
  constexpr unsigned char cuda_13 = 8;
  const unsigned shift = header->e_ident[EI_ABIVERSION] >= cuda_13 ? 8 : 0;
  const unsigned number = header->e_flags >> shift & 0xff;
  return ComputeCapability{static_cast<int>(number / 10), static_cast<int>(number % 10)};
}

std::int64_t number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == std::string_view::npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  std::int64_t number = 0;
  const auto code = std::from_chars(line.data() + begin, line.data() + end, number).ec;
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  return code == std::errc::result_out_of_range ? most : std::min(number, most);
}

void add_assembler_report(std::string_view log, std::vector<KernelResources>& kernels) {
  KernelResources* kernel = nullptr;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));

    constexpr std::string_view start = "Compiling entry function '";
    if (const std::size_t at = line.find(start); at != std::string_view::npos) {
      const std::string_view rest = line.substr(at + start.size());
      const std::string_view name = rest.substr(0, rest.find('\''));
      const auto found = std::find_if(kernels.begin(), kernels.end(),
                                      [&](const auto& entry) { return entry.name == name; });
      kernel = found == kernels.end() ? nullptr : &*found;
      // The assembler's words are the last: a warning before them can quote anything.
      if (kernel) kernel->spill_store_bytes = kernel->spill_load_bytes = 0;
    }
    if (!kernel) continue;
    kernel->spill_store_bytes += number_before(line, " bytes spill stores");
    kernel->spill_load_bytes += number_before(line, " bytes spill loads");
    if (number_before(line, " registers") > 0) {
      kernel->static_shared_bytes = number_before(line, " bytes smem");
    }
  }
}

}  // namespace rekernel
