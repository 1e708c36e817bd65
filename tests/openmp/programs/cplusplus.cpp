// SPDX-License-Identifier: BSD-3-Clause
// C++ in regions: objects with constructors, containers, algorithms, exceptions, lambdas, templates, virtual functions.
#include "check.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#pragma omp declare target
struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};
struct Square : Shape {
  explicit Square(double side) : side_(side) {}
  double area() const override { return side_ * side_; }
  double side_;
};
template <typename T>
T twice(T value) {
  return value + value;
}
static int checked(int value) {
  if (value > 3) {
    throw std::out_of_range("more than three");
  }
  return value;
}
#pragma omp end declare target

int main() {
  check_place();
  int last = 0, caught = 0;
  double area = 0, sum = 0;
#pragma omp target map(from : last, area, sum)
  {
    std::vector<int> values(1000);
    std::iota(values.rbegin(), values.rend(), 0);
    std::sort(values.begin(), values.end(), [](int a, int b) { return a < b; });
    last = values.back();
    std::unique_ptr<Shape> shape = std::make_unique<Square>(twice(1.5));
    area = shape->area();
    std::string text = "some text that is longer than the small buffer of a string";
    sum = static_cast<double>(text.size());
  }
  CHECK(last == 999 && area == 9 && sum == 58);
#pragma omp target map(from : caught)
  {
    caught = 0;
    for (int i = 0; i < 6; i++) {
      try {
        caught += checked(i) * 0;
      } catch (const std::exception& error) {
        caught += std::string(error.what()) == "more than three" ? 1 : 100;
      }
    }
  }
  CHECK(caught == 2);

  std::vector<double> numbers(5000, 1.0);
  double* data = numbers.data();
  const auto scale = [](double x) { return 3 * x; };
#pragma omp target parallel for map(tofrom : data [0:5000]) firstprivate(scale)
  for (int i = 0; i < 5000; i++) {
    data[i] = scale(data[i]) + i;
  }
  CHECK(numbers[4999] == 5002);
  return check_status();
}
