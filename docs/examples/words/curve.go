package words

import (
	"math"
	"time"
)

// squareRoot is least times the square root of the number of failures.
func squareRoot(least time.Duration, n int) time.Duration {
	return time.Duration(float64(least) * math.Sqrt(float64(n)))
}
