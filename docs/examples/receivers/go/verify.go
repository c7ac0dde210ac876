package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var timestamp = regexp.MustCompile(`^[0-9]{1,12}$`)

func refusal(secret, id, sentAt, signatures string, body []byte, now time.Time) string {
	if id == "" || sentAt == "" || signatures == "" {
		return "missing_header"
	}
	if !timestamp.MatchString(sentAt) {
		return "malformed_timestamp"
	}
	seconds, _ := strconv.ParseInt(sentAt, 10, 64)
	if now.Sub(time.Unix(seconds, 0)) > 300*time.Second {
		return "timestamp_too_old"
	}
	if time.Unix(seconds, 0).Sub(now) > 300*time.Second {
		return "timestamp_too_new"
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic("the secret is not whsec_ and base64")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + sentAt + "."))
	mac.Write(body)
	right := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	reason := "no_v1_signature"
	for _, one := range strings.Split(signatures, " ") {
		if hmac.Equal([]byte(one), []byte(right)) {
			return ""
		}
		if strings.HasPrefix(one, "v1,") {
			reason = "wrong_signature"
		}
	}
	return reason
}
