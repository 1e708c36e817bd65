#include "time_step.hpp"

#include <algorithm>
#include <cmath>

namespace fft3d {
namespace {

constexpr double kViscosity = 0.01;

double friction_rate(double t) { return 0.1 * (1 + 0.5 * std::cos(3 * t)); }

struct Wind {
  double x, y, z;
};
Wind wind_at(double t) { return {0.5 * std::cos(t), 0.3 * std::sin(t), 0.2}; }

// Small enough for a working set that stays in the first-level cache during all steps.
constexpr std::size_t kBlock = 512;

}  // namespace

TimeStep::TimeStep(int steps, int nx, int ny, int nz) : steps_(steps) {
  const double x = nx / 2, y = ny / 2, z = nz / 2;
  const double square = x * x + y * y + z * z;
  step_ = 1 / (kViscosity * square + std::sqrt(square));  // well inside the stability region of RK4
}

void TimeStep::friction(int iteration, Half half, double* values, std::size_t count) const {
  const double h = step_ / 2;
  const double start = step_ * steps_ * (iteration + (half == Half::second ? 0.5 : 0.0));
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t end = std::min(count, begin + kBlock);
    for (int step = 0; step < steps_; ++step) {
      const double t = start + step * h;
      const double a = -friction_rate(t), b = -friction_rate(t + h / 2), c = -friction_rate(t + h);
      for (std::size_t i = begin; i < end; ++i) {
        const double u = values[i];
        const double k1 = a * u;
        const double k2 = b * (u + h / 2 * k1);
        const double k3 = b * (u + h / 2 * k2);
        const double k4 = c * (u + h * k3);
        values[i] = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
      }
    }
  }
}

void TimeStep::wind_and_diffusion(int iteration, int kx, int ky, const int* kz, Complex* line,
                                  std::size_t count) const {
  const double h = step_;
  auto* parts = reinterpret_cast<double*>(line);
  for (int step = 0; step < steps_; ++step) {
    const double t = h * (double(steps_) * iteration + step);
    const Wind w1 = wind_at(t), w2 = wind_at(t + h / 2), w3 = wind_at(t + h);
    const double xy1 = w1.x * kx + w1.y * ky, xy2 = w2.x * kx + w2.y * ky, xy3 = w3.x * kx + w3.y * ky;
    const double square_xy = double(kx) * kx + double(ky) * ky;
    for (std::size_t i = 0; i < count; ++i) {
      const double z = kz[i];
      const double decay = -kViscosity * (square_xy + z * z);
      const double turn1 = -(xy1 + w1.z * z), turn2 = -(xy2 + w2.z * z), turn3 = -(xy3 + w3.z * z);
      const double re = parts[2 * i], im = parts[2 * i + 1];
      const double re1 = decay * re - turn1 * im, im1 = decay * im + turn1 * re;
      double x = re + h / 2 * re1, y = im + h / 2 * im1;
      const double re2 = decay * x - turn2 * y, im2 = decay * y + turn2 * x;
      x = re + h / 2 * re2, y = im + h / 2 * im2;
      const double re3 = decay * x - turn2 * y, im3 = decay * y + turn2 * x;
      x = re + h * re3, y = im + h * im3;
      const double re4 = decay * x - turn3 * y, im4 = decay * y + turn3 * x;
      parts[2 * i] = re + h / 6 * (re1 + 2 * re2 + 2 * re3 + re4);
      parts[2 * i + 1] = im + h / 6 * (im1 + 2 * im2 + 2 * im3 + im4);
    }
  }
}

}  // namespace fft3d
