package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

var seen sync.Map // use a table with a unique column instead

func receive(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, 2<<20))
	if err != nil {
		http.Error(response, "the body cannot be read", http.StatusBadRequest)
		return
	}
	secret, header := os.Getenv("WEBHOOK_SECRET"), request.Header
	id, sentAt := header.Get("webhook-id"), header.Get("webhook-timestamp")
	signatures := header.Get("webhook-signature")
	if reason := refusal(secret, id, sentAt, signatures, body, time.Now()); reason != "" {
		http.Error(response, reason, http.StatusUnauthorized)
		return
	}
	response.WriteHeader(http.StatusNoContent)
	if _, known := seen.LoadOrStore(id, true); !known {
		var event struct{ Event string }
		json.Unmarshal(body, &event)
		fmt.Println(event.Event, id)
	}
}

func main() {
	log.Fatal(http.ListenAndServe("127.0.0.1:9000", http.HandlerFunc(receive)))
}
