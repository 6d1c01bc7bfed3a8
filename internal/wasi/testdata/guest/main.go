// The guest is an ordinary Go program that uses what WASI offers: arguments,
// environment, clock, random bytes, standard streams and files. It prints what it
// finds and exits with 3.
package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

func main() {
	fmt.Println("args", os.Args)
	fmt.Println("env", os.Getenv("KEY"))
	start := time.Now()
	fmt.Println("time", start.UTC().Format(time.RFC3339Nano), time.Since(start))
	random := make([]byte, 4)
	_, err := rand.Read(random)
	fmt.Println("random", random, err)
	stdin, err := io.ReadAll(os.Stdin)
	fmt.Println("stdin", len(stdin), err)
	fmt.Fprintln(os.Stderr, "to stderr")

	content, err := os.ReadFile("/data/hello.txt")
	fmt.Printf("read %q %v\n", content, err)
	must(os.MkdirAll("/data/a/b", 0o755))
	must(os.WriteFile("/data/a/b/one", []byte("1"), 0o644))
	file, err := os.OpenFile("/data/a/b/one", os.O_APPEND|os.O_WRONLY, 0)
	must(err)
	_, err = file.WriteString("23")
	must(err)
	must(file.Sync())
	must(file.Close())
	must(os.Rename("/data/a/b/one", "/data/a/two"))
	info, err := os.Stat("/data/a/two")
	must(err)
	fmt.Println("stat", info.Name(), info.Size(), info.Mode().IsRegular())
	must(fs.WalkDir(os.DirFS("/data"), ".", func(path string, d fs.DirEntry, err error) error {
		fmt.Println("walk", path, d.IsDir(), err)
		return err
	}))
	must(os.RemoveAll("/data/a"))
	_, err = os.Stat("/data/a")
	fmt.Println("gone", errors.Is(err, fs.ErrNotExist))

	_, err = os.ReadFile("/data/../secret")
	fmt.Println("secret", err != nil)
	_, err = os.ReadFile("/etc/passwd")
	fmt.Println("passwd", err != nil)
	err = os.WriteFile("/ro/new", nil, 0o644)
	fmt.Println("read-only", err != nil && !strings.Contains(err.Error(), "not exist"))
	os.Exit(3)
}

func must(err error) {
	if err != nil {
		fmt.Println("FAILED", err)
		os.Exit(1)
	}
}
