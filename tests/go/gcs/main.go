// Google Cloud Storage for tests: fake-gcs-server, and the upload of its XML API, which the server lacks.
//
// Prints its URL, then serves until standard input ends. The bucket `tables` is there. deltalake uploads by
// `PUT /BUCKET/OBJECT`; such a request becomes an upload of the JSON API, whose condition the server checks.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

func translated(storage http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bucket, object, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if r.Method != http.MethodPut || !found || bucket == "upload" || bucket == "storage" {
			storage.ServeHTTP(w, r)
			return
		}
		query := url.Values{"uploadType": {"media"}, "name": {object}}
		if generation := r.Header.Get("X-Goog-If-Generation-Match"); generation != "" {
			query.Set("ifGenerationMatch", generation)
		}
		made := r.Clone(r.Context())
		made.Method = http.MethodPost
		made.URL = &url.URL{Path: "/upload/storage/v1/b/" + bucket + "/o", RawQuery: query.Encode()}
		made.RequestURI = made.URL.RequestURI()
		w.Header().Set("ETag", `"none"`) // the XML API's response has one, and clients need it
		storage.ServeHTTP(w, made)
	})
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	host := listener.Addr().String()
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{
		NoListener: true, PublicHost: host, ExternalURL: "http://" + host})
	if err != nil {
		panic(err)
	}
	server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "tables"})
	fmt.Println("http://" + host)
	go func() { _ = http.Serve(listener, translated(server.HTTPHandler())) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}
