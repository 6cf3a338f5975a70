#!/usr/bin/env bash
# certificates.sh: functions that create certificates, for control-plane.sh and node.sh. The variable `pki` is the folder of certificates.

certificate() { # NAME SUBJECT [SUBJECT_ALTERNATIVE_NAMES]: writes NAME.crt and NAME.key of a client and server
  local names=${3:+subjectAltName=$3}
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$2" -keyout "$pki/$1.key" -out "$pki/$1.csr" 2> /dev/null
  openssl x509 -req -in "$pki/$1.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -set_serial "0x$(openssl rand -hex 8)" -days 30 -out "$pki/$1.crt" \
    -extfile <(printf 'extendedKeyUsage=clientAuth,serverAuth\n%s\n' "$names") 2> /dev/null
}

kubeconfig() { # NAME: prints the kubeconfig of the holder of a certificate
  cat << YAML
apiVersion: v1
kind: Config
clusters: [{name: laboratory, cluster: {server: "https://10.99.0.1:6443", certificate-authority: $pki/ca.crt}}]
users: [{name: user, user: {client-certificate: $pki/$1.crt, client-key: $pki/$1.key}}]
contexts: [{name: laboratory, context: {cluster: laboratory, user: user}}]
current-context: laboratory
YAML
}
