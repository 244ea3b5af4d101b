// Object stores for tests: the emulators, and the parts of Google's and Azure's interfaces that they lack.
//
//	stores gs        runs fake-gcs-server, with the bucket `tables`
//	stores abfs URL  forwards to Azurite at URL
//
// Prints its URL, then serves until standard input ends. Both emulators ignore the start of a list request, so that
// they answer with earlier names too; deltalake fails then. The filter is in lists.go.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	address := listener.Addr().String()
	var store http.Handler
	switch {
	case len(os.Args) == 2 && os.Args[1] == "gs":
		store = google(address)
	case len(os.Args) == 3 && os.Args[1] == "abfs":
		store = azure(os.Args[2])
	default:
		fmt.Fprintln(os.Stderr, "usage: stores gs | stores abfs URL")
		os.Exit(2)
	}
	fmt.Println("http://" + address)
	go func() { _ = http.Serve(listener, store) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}
