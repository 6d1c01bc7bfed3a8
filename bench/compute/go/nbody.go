//go:build wasip1

package main

import "math"

type body struct{ x, y, z, vx, vy, vz, mass float64 }

// nbody is the planets' simulation of the Computer Language Benchmarks Game, n
// hundred steps.
func nbody(n int) uint32 {
	const solar, days = 4 * math.Pi * math.Pi, 365.24
	bodies := []body{
		{mass: solar},
		{4.84143144246472090, -1.16032004402742839, -0.103622044471123109, 0.00166007664274403694 * days, 0.00769901118419740425 * days, -0.0000690460016972063023 * days, 0.000954791938424326609 * solar},
		{8.34336671824457987, 4.12479856412430479, -0.403523417114321381, -0.00276742510726411072 * days, 0.00499852801234917238 * days, 0.0000230417297573763929 * days, 0.000285885980666130812 * solar},
		{12.8943695621391310, -15.1111514016986312, -0.223307578892655734, 0.00296460137564761618 * days, 0.00237847173959480950 * days, -0.0000296589568540237556 * days, 0.0000436624404335156298 * solar},
		{15.3796971148509165, -25.9193146099879641, 0.179258772950371181, 0.00268067772490389322 * days, 0.00162824170038242295 * days, -0.0000951592254519715870 * days, 0.0000515138902046611451 * solar},
	}
	for range n * 100 {
		advance(bodies, 0.01)
	}
	sum := uint32(0)
	for i := range bodies {
		sum = mix(sum, uint32(math.Float64bits(bodies[i].x)>>20))
	}
	return sum
}

func advance(bodies []body, dt float64) {
	for i := range bodies {
		a := &bodies[i]
		for j := i + 1; j < len(bodies); j++ {
			b := &bodies[j]
			dx, dy, dz := a.x-b.x, a.y-b.y, a.z-b.z
			d := dx*dx + dy*dy + dz*dz
			m := dt / (d * math.Sqrt(d))
			a.vx -= dx * b.mass * m
			a.vy -= dy * b.mass * m
			a.vz -= dz * b.mass * m
			b.vx += dx * a.mass * m
			b.vy += dy * a.mass * m
			b.vz += dz * a.mass * m
		}
	}
	for i := range bodies {
		b := &bodies[i]
		b.x += dt * b.vx
		b.y += dt * b.vy
		b.z += dt * b.vz
	}
}
