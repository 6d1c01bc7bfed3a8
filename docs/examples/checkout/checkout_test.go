package checkout

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/build"
	"github.com/wasmactors/wasmactors/host/testkit"
	"github.com/wasmactors/wasmactors/runtime"
)

var module *host.Module

// TestMain builds the guest, and keeps what was compiled for the next run.
func TestMain(m *testing.M) {
	ctx := context.Background()
	dir, err := os.UserCacheDir()
	if err != nil {
		panic(err)
	}
	dir = filepath.Join(dir, "wasmactors-tests")
	built, err := build.Guest(ctx, "guest", build.Options{Compiler: "go", CacheDir: filepath.Join(dir, "builds")})
	if err != nil {
		panic(err)
	}
	code, err := built.Code(ctx)
	if err != nil {
		panic(err)
	}
	engine, err := runtime.New(ctx, runtime.NewConfig().WithCacheDir(filepath.Join(dir, "images")))
	if err != nil {
		panic(err)
	}
	image, err := engine.Load(ctx, code, runtime.ImageConfig{Name: "checkout"})
	if err != nil {
		panic(err)
	}
	module = host.NewModule(image)
	status := m.Run()
	_ = engine.Close(ctx)
	os.Exit(status)
}

// The probe is the stock, and another asks: the test is everybody else.
func TestCart(t *testing.T) {
	k := testkit.New(t)
	stock, buyer := k.Probe("stock"), k.Probe("buyer")
	cart := k.Spawn("cart", Cart(module))

	buyer.Ask(cart, "add tea")
	stock.Expect("tea")
	stock.Reply(41)
	buyer.Expect(1)

	buyer.Ask(cart, "add coffee")
	stock.Expect("coffee")
	stock.ReplyError("sold out")
	buyer.Expect(testkit.OfKind(abi.KindReplyError))
}

// A stock that does not answer costs two seconds, of virtual time.
func TestCartWaitsForTheStock(t *testing.T) {
	k := testkit.New(t)
	stock, buyer := k.Probe("stock"), k.Probe("buyer")
	cart := k.Spawn("cart", Cart(module))
	buyer.Within(2*time.Second, 3*time.Second, func() {
		k.ExpectEvents(1, testkit.LogLine().From("/user/cart").Level(abi.LogWarn).Text("no tea"), func() {
			buyer.Ask(cart, "add tea")
		})
		buyer.Expect(testkit.Matching("no tea", func(m host.Message) bool {
			return m.Err() != nil && strings.Contains(m.Err().Error(), "no tea")
		}))
	})
	stock.Expect("tea")
	stock.ExpectNone(time.Minute)
}

// What the cart logs is a warning, and no error.
func TestCartWarns(t *testing.T) {
	k := testkit.New(t)
	k.Spawn("stock", Stock(nil))
	cart := k.Spawn("cart", Cart(module))
	k.ExpectEvents(0, testkit.LogLine().Level(abi.LogError), func() {
		k.ExpectEvents(1, testkit.LogLine().Pattern("^no "), func() { k.Ask(cart, "add tea") })
	})
}

// The test is the parent, and hears of the end.
func TestCartEnds(t *testing.T) {
	k := testkit.New(t)
	parent := k.Probe("shop")
	cart := parent.Spawn("cart", Cart(module))
	parent.Watch(cart)
	parent.Within(time.Minute, time.Minute, func() { parent.Expect(0) })
	parent.ExpectTerminated(cart)
}

// What is sent again after a crash is not reserved twice: the turn that has failed had sent nothing.
func TestCartCrashes(t *testing.T) {
	k := testkit.New(t)
	k.Spawn("stock", Stock(map[string]int{"tea": 3}))
	buyer := k.Probe("buyer")
	cart := k.Spawn("cart", Cart(module))
	k.Fault("/user/cart").Matching("add tea").Nth(2).Crash()

	buyer.Ask(cart, "add tea")
	buyer.Expect(1)
	k.ExpectEvents(1, testkit.Crash().From("/user/cart").Kind(abi.FailureTrap), func() { buyer.Ask(cart, "add tea") })
	buyer.Expect(testkit.OfKind(abi.KindReplyError)) // and the cart is restarted, empty
	buyer.Ask(cart, "add tea")
	buyer.Expect(1)
}

// The cart takes all that waits in one call. A crash on the second message leaves the first one done, and
// the third one comes to the next incarnation.
func TestCartCrashesInABatch(t *testing.T) {
	k := testkit.New(t)
	buyer := k.Probe("buyer")
	cart := k.Spawn("cart", Cart(module))
	k.Fault("/user/cart").Nth(2).Crash()
	got := k.ExpectEvents(1, testkit.Crash().Mail("count"), func() {
		for range 3 {
			if err := k.System().TellFrom(buyer.Ref(), cart, "count"); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got[0].Failure.Turn != 2 || got[0].Incarnation != 0 {
		t.Errorf("%+v", got[0])
	}
	buyer.ReceiveN(2)
	buyer.ExpectNone(time.Second)
}

// An answer that is lost is as good as none; one that comes twice counts once.
func TestCartOnABadLine(t *testing.T) {
	k := testkit.New(t, testkit.Seed(7))
	k.Spawn("stock", Stock(map[string]int{"tea": 100}))
	buyer := k.Probe("buyer")
	cart := k.Spawn("cart", Cart(module))
	k.Mute(testkit.LogLine(), testkit.DeadLetter())
	lost := k.Fault("/user/cart").From("/user/stock").Chance(0.3).Drop()
	k.Fault("/user/cart").From("/user/stock").Chance(0.3).Duplicate()
	for range 20 {
		buyer.Ask(cart, "add tea")
		buyer.ExpectAny(testkit.OfType[int](), testkit.OfKind(abi.KindReplyError))
	}
	buyer.Ask(cart, "count")
	buyer.Expect(20 - lost.Hits())
}

// The failure of one message is the test's, and the supervisor does not hear of it.
func TestCartRefuses(t *testing.T) {
	k := testkit.New(t)
	cart := k.Spawn("cart", Cart(module))
	if _, err := k.Receive(cart, "add"); err == nil || !strings.Contains(err.Error(), "nothing to add") {
		t.Errorf("%v", err)
	}
	if info, err := k.System().View().Info(cart); err != nil || info.Restarts != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}
