// A device for tests, over host memory: torch treats its tensors as it treats those of a GPU.
//
// Every operator that needs numbers is computed by the CPU's kernel on copies (a boxed fallback). Operators that mix tensors of the
// device with tensors of the CPU raise, as CUDA's do. The device has its own allocator, with a limit that tests set, its own
// generator, and autocast lists equal to CUDA's.

#include <ATen/CPUFunctions.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <cstdlib>
#include <limits>

namespace {

constexpr auto kDevice = c10::DeviceType::PrivateUse1;
const c10::Device kOnly(kDevice, 0);

// ---- memory: counted, and refused above a limit ---------------------------------------------------------------------

size_t held = 0, most_held = 0, limit = std::numeric_limits<size_t>::max();

struct Block {
  void* data;
  size_t size;
};

void release(void* context) {
  auto* block = static_cast<Block*>(context);
  held -= block->size;
  std::free(block->data);
  delete block;
}

struct Allocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t size) override {
    TORCH_CHECK_WITH(
        OutOfMemoryError, size <= limit && held <= limit - size,
        "simulated device out of memory. Tried to allocate ", size, " bytes, ", held, " are in use");
    void* data = nullptr;
    TORCH_CHECK(posix_memalign(&data, 64, std::max<size_t>(size, 64)) == 0, "the host is out of memory");
    held += size;
    most_held = std::max(most_held, held);
    return {data, new Block{data, size}, &release, kOnly};
  }
  void copy_data(void* to, const void* from, size_t count) const override {
    default_copy_data(to, from, count);
  }
  bool initialized() override {
    return true;
  }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    auto& bytes = stats.allocated_bytes[0];
    bytes.current = static_cast<int64_t>(held);
    bytes.peak = static_cast<int64_t>(most_held);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {
    most_held = held;
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    auto total = std::min<size_t>(limit, size_t(8) << 30);
    return {total - std::min(held, total), total};
  }
};

Allocator allocator;
REGISTER_ALLOCATOR(kDevice, &allocator);

// ---- one device with one stream -------------------------------------------------------------------------------------

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return kDevice;
  }
  c10::Device exchangeDevice(c10::Device) const override {
    return kOnly;
  }
  c10::Device getDevice() const override {
    return kOnly;
  }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override {
    return c10::Stream(c10::Stream::DEFAULT, kOnly);
  }
  c10::Stream exchangeStream(c10::Stream) const override {
    return c10::Stream(c10::Stream::DEFAULT, kOnly);
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return 1;
  }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// ---- its generator: the CPU's algorithm with a state of its own ----------------------------------------------------------

struct Generator final : at::CPUGeneratorImpl {
  explicit Generator(uint64_t seed = c10::default_rng_seed_val) : CPUGeneratorImpl(seed) {
    device_ = kOnly;
    key_set_ = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
  }
};

const at::Generator& own_generator() {
  static auto generator = at::make_generator<Generator>();
  return generator;
}

// While it lasts, the CPU's default generator continues the sequence of a generator of the device.
class Borrowed {
 public:
  explicit Borrowed(const at::Generator& lender)
      : lender_(static_cast<at::CPUGeneratorImpl*>(lender.unsafeGetGeneratorImpl())),
        cpu_(at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator())),
        before_(cpu_->clone()) {
    move(*lender_, *cpu_);
  }
  ~Borrowed() {
    move(*cpu_, *lender_);
    move(*before_, *cpu_);
  }

 private:
  static void move(at::CPUGeneratorImpl& from, at::CPUGeneratorImpl& to) {
    to.set_engine(from.engine());
    to.set_next_float_normal_sample(from.next_float_normal_sample());
    to.set_next_double_normal_sample(from.next_double_normal_sample());
  }
  at::CPUGeneratorImpl* lender_;
  at::CPUGeneratorImpl* cpu_;
  std::shared_ptr<at::CPUGeneratorImpl> before_;
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return true;
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override {
    return true;
  }
  c10::DeviceIndex deviceCount() const override {
    return 1;
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return 0;
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return own_generator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::make_generator<Generator>();
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size) const override {
    at::native::resize_bytes_cpu(storage.unsafeGetStorageImpl(), size);
  }
};

// ---- operators --------------------------------------------------------------------------------------------------------

// CUDA takes indices from the CPU, and copies and `set_` connect devices.
const std::unordered_set<std::string> kMixing = {
    "aten::index", "aten::index_put_", "aten::_index_put_impl_", "aten::index_put", "aten::_unsafe_index", "aten::copy_"};

void refuse_mixed(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto& schema = op.schema();
  const auto& arguments = schema.arguments();
  const bool indexes = kMixing.count(schema.name()) > 0;
  bool on_device = false, on_cpu = false;
  auto note = [&](const at::Tensor& tensor, bool written) {
    if (!tensor.defined()) {
      return;
    }
    on_device |= tensor.device().type() == kDevice;
    on_cpu |= tensor.device().is_cpu() && (tensor.dim() > 0 || written);  // kernels read CPU scalars as numbers
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& value = stack[stack.size() - arguments.size() + i];
    const auto* alias = arguments[i].alias_info();
    const bool written = alias != nullptr && alias->isWrite();
    if (value.isTensor()) {
      note(value.toTensor(), written);
    } else if (value.isTensorList()) {
      for (const auto& tensor : value.toTensorVector()) {
        note(tensor, written);
      }
    } else if (value.isOptionalTensorList() && !indexes) {
      for (const auto& tensor : value.toOptionalTensorVector()) {
        note(tensor.value_or(at::Tensor()), written);
      }
    }
  }
  TORCH_CHECK(
      !(on_device && on_cpu), "Expected all tensors to be on the same device, but found at least two devices, ", kOnly,
      " and cpu! (when calling ", schema.name(), ")");
}

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  refuse_mixed(op, *stack);
  at::Generator lender = own_generator();
  bool draws = op.hasTag(at::Tag::nondeterministic_seeded);
  const auto count = op.schema().arguments().size();
  for (size_t i = stack->size() - count; i < stack->size(); ++i) {
    auto& value = (*stack)[i];
    if (value.isGenerator()) {
      TORCH_CHECK(value.toGenerator().device().type() == kDevice, "Expected a generator of the device, got one of the CPU");
      lender = value.toGenerator();
      value = c10::IValue();
      draws = true;
    }
  }
  if (draws) {
    Borrowed borrowed(lender);
    at::native::cpu_fallback(op, stack);
  } else {
    at::native::cpu_fallback(op, stack);
  }
}

at::Tensor empty(
    c10::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>, std::optional<c10::Device>,
    std::optional<bool>, std::optional<c10::MemoryFormat> format) {
  return at::detail::empty_generic(
      size, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(
    c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
    std::optional<c10::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(
      size, stride, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype));
}

// The same memory as a tensor of the CPU.
at::Tensor on_host(const at::Tensor& tensor) {
  if (tensor.device().is_cpu()) {
    return tensor;
  }
  return at::from_blob(
      const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(),
      at::TensorOptions().dtype(tensor.scalar_type()).device(c10::kCPU));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  on_host(to).copy_(on_host(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) {
    to.resize_(from.sizes());
  }
  return copy_from(from, to, false);
}

at::Tensor& set_storage(
    at::Tensor& self, at::Storage storage, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::cpu::set_(self, storage, offset, size, stride);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", [](const at::Tensor& self, c10::IntArrayRef size) { return at::native::view(self, size); });
  m.impl("_reshape_alias", [](const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
    return at::native::_reshape_alias(self, size, stride);
  });
  m.impl("unfold", &at::native::unfold);
  m.impl("resize_", [](const at::Tensor& self, c10::IntArrayRef size, std::optional<at::MemoryFormat> format) -> const at::Tensor& {
    return at::native::resize_(self, size, format);
  });
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Storage", [](at::Tensor& self, at::Storage storage) -> at::Tensor& {
    const auto size = static_cast<int64_t>(storage.nbytes() / self.dtype().itemsize());
    return set_storage(self, storage, 0, {size}, {});
  });
  m.impl("set_.source_Tensor", &at::native::set_tensor_);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
#define FULL(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(FULL)
#define FULL_SET(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(FULL_SET)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(WIDEST)
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  at::RegisterPrivateUse1HooksInterface(new Hooks());
  m.def("default_generator", [] { return own_generator(); });
  m.def("held", [] { return held; }, "bytes in use");
  m.def("most_held", [] { return most_held; }, "most bytes in use since the last reset");
  m.def("reset_most_held", [] { most_held = held; });
  m.def("set_limit", [](size_t bytes) { limit = bytes; }, "bytes that may be in use");
}
