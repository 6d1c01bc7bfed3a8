// The planets' simulation of the Computer Language Benchmarks Game.
#include "suite.h"

#define PI 3.141592653589793
#define SOLAR (4 * PI * PI)
#define DAYS 365.24
#define BODIES 5

typedef struct {
  double x, y, z, vx, vy, vz, mass;
} body;

static const body start[BODIES] = {
    {0, 0, 0, 0, 0, 0, SOLAR},
    {4.84143144246472090, -1.16032004402742839, -0.103622044471123109, 0.00166007664274403694 * DAYS, 0.00769901118419740425 * DAYS, -0.0000690460016972063023 * DAYS, 0.000954791938424326609 * SOLAR},
    {8.34336671824457987, 4.12479856412430479, -0.403523417114321381, -0.00276742510726411072 * DAYS, 0.00499852801234917238 * DAYS, 0.0000230417297573763929 * DAYS, 0.000285885980666130812 * SOLAR},
    {12.8943695621391310, -15.1111514016986312, -0.223307578892655734, 0.00296460137564761618 * DAYS, 0.00237847173959480950 * DAYS, -0.0000296589568540237556 * DAYS, 0.0000436624404335156298 * SOLAR},
    {15.3796971148509165, -25.9193146099879641, 0.179258772950371181, 0.00268067772490389322 * DAYS, 0.00162824170038242295 * DAYS, -0.0000951592254519715870 * DAYS, 0.0000515138902046611451 * SOLAR},
};

static void advance(body *bodies, double dt) {
  for (int i = 0; i < BODIES; i++) {
    body *a = &bodies[i];
    for (int j = i + 1; j < BODIES; j++) {
      body *b = &bodies[j];
      double dx = a->x - b->x, dy = a->y - b->y, dz = a->z - b->z;
      double d = dx * dx + dy * dy + dz * dz;
      double m = dt / (d * __builtin_sqrt(d));
      a->vx -= dx * b->mass * m, a->vy -= dy * b->mass * m, a->vz -= dz * b->mass * m;
      b->vx += dx * a->mass * m, b->vy += dy * a->mass * m, b->vz += dz * a->mass * m;
    }
  }
  for (int i = 0; i < BODIES; i++) {
    body *b = &bodies[i];
    b->x += dt * b->vx, b->y += dt * b->vy, b->z += dt * b->vz;
  }
}

// nbody simulates n hundred steps.
u32 nbody(int n) {
  body *bodies = (body *)heap;
  for (int i = 0; i < BODIES; i++) bodies[i] = start[i];
  for (n *= 100; n > 0; n--) advance(bodies, 0.01);
  u32 sum = 0;
  for (int i = 0; i < BODIES; i++) sum = mix(sum, (u32)(int)(bodies[i].x * 1e6));
  return sum;
}
