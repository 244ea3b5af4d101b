package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
)

// azure forwards to Azurite and filters its lists by `startFrom`. Unlike the other stores', this start is inclusive.
func azure(address string) http.Handler {
	azurite, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(azurite)
			r.Out.Host = r.In.Host // a copy within the store names its source by this host
		},
		ModifyResponse: listFrom,
	}
}

func listFrom(response *http.Response) error {
	query := response.Request.URL.Query()
	start := query.Get("startFrom")
	if query.Get("comp") != "list" || start == "" || response.StatusCode != http.StatusOK {
		return nil
	}
	found, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response.Body.Close()
	list, err := filtered(found, "Blob", func(name string) bool { return name >= start })
	if err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(list))
	response.ContentLength = int64(len(list))
	response.Header.Set("Content-Length", strconv.Itoa(len(list)))
	return nil
}
