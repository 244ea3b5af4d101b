package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

// google returns fake-gcs-server with the upload and the start of lists of Google's XML API.
func google(address string) http.Handler {
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{
		NoListener: true, PublicHost: address, ExternalURL: "http://" + address})
	if err != nil {
		panic(err)
	}
	server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "tables"})
	storage := server.HTTPHandler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bucket, object, inBucket := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch start := r.URL.Query().Get("start-after"); {
		case r.Method == http.MethodPut && inBucket && bucket != "upload" && bucket != "storage":
			w.Header().Set("ETag", `"none"`) // the XML API's response has one, and clients need it
			storage.ServeHTTP(w, asUpload(r, bucket, object))
		case r.Method == http.MethodGet && start != "":
			listAfter(storage, w, r, start)
		default:
			storage.ServeHTTP(w, r)
		}
	})
}

// asUpload makes an upload of the JSON API, whose condition the server checks, from `PUT /BUCKET/OBJECT`.
func asUpload(r *http.Request, bucket, object string) *http.Request {
	query := url.Values{"uploadType": {"media"}, "name": {object}}
	if generation := r.Header.Get("X-Goog-If-Generation-Match"); generation != "" {
		query.Set("ifGenerationMatch", generation)
	}
	made := r.Clone(r.Context())
	made.Method = http.MethodPost
	made.URL = &url.URL{Path: "/upload/storage/v1/b/" + bucket + "/o", RawQuery: query.Encode()}
	made.RequestURI = made.URL.RequestURI()
	return made
}

// listAfter answers a list request with the names after `start`.
func listAfter(storage http.Handler, w http.ResponseWriter, r *http.Request, start string) {
	found := httptest.NewRecorder()
	storage.ServeHTTP(found, r)
	list, err := filtered(found.Body.Bytes(), "Contents", func(name string) bool { return name > start })
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for name, values := range found.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(found.Code)
	_, _ = w.Write(list)
}
