// A schema registry for tests: franz-go's in-memory one, with a switch for outages and a log of the requests.
//
// Prints its URL, then serves until standard input ends. POST /_test/outage?how=503|drop|hang|none changes how
// requests end; GET /_test/requests lists "METHOD path" of each request since the last call.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/sr/srfake"
)

type server struct {
	mu       sync.Mutex
	how      string
	requests []string
	ended    chan struct{}
	registry http.Handler
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	how := s.how
	switch r.URL.Path {
	case "/_test/outage":
		s.how = r.URL.Query().Get("how")
		s.mu.Unlock()
		return
	case "/_test/requests":
		fmt.Fprint(w, strings.Join(s.requests, "\n"))
		s.requests = nil
		s.mu.Unlock()
		return
	}
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	switch how {
	case "503":
		http.Error(w, `{"error_code": 50301, "message": "not now"}`, http.StatusServiceUnavailable)
	case "drop":
		if connection, _, err := w.(http.Hijacker).Hijack(); err == nil {
			connection.Close()
		}
	case "hang":
		select {
		case <-r.Context().Done():
		case <-s.ended:
		}
	default:
		s.registry.ServeHTTP(w, r)
	}
}

func main() {
	auth := flag.String("auth", "", "what the header Authorization must be")
	flag.Parse()
	var options []srfake.Option
	if *auth != "" {
		options = append(options, srfake.WithAuth(*auth))
	}
	s := &server{ended: make(chan struct{}), registry: srfake.NewRegistry(options...).Handler()}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	go http.Serve(listener, s)
	io.Copy(io.Discard, os.Stdin)
	close(s.ended)
}
