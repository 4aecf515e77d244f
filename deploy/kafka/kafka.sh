#!/usr/bin/env bash
# kafka.sh start|stop|kill|status [N...]: an Apache Kafka broker (or three) on loopback, KRaft combined mode, for development and tests.
# With numbers, from 0, only those brokers are meant: three brokers are best started together, since one alone has no
# quorum and does not come up. `kill` is kill -9.
#
# Environment, with defaults:
#   KAFKA_PORT=19092     client port of the first broker; broker i listens on KAFKA_PORT+i, its controller on KAFKA_PORT+100+i
#   KAFKA_BROKERS=1      number of brokers, 1 or 3
#   KAFKA_DIR=target/data (beside this script)   configuration, logs, pid files and data; `stop` keeps them
#   KAFKA_MIN_INSYNC=1   min.insync.replicas of topics that do not say otherwise
#   KAFKA_HEAP=512m      heap of each broker
#   KAFKA_SESSION_MS=9000   broker.session.timeout.ms: a broker that stands still for longer leads nothing for a moment;
#                        after `kill` it must pass before the broker is let in again
#   KAFKA_WAIT=90        seconds to wait for the brokers to answer, once their jars are there
#   KAFKA_USER=          with NAME:PASSWORD broker i also listens with TLS and SASL (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512)
#                        on KAFKA_PORT+300+i; KAFKA_DIR/ca.pem is the authority to trust. Access lists are in force then:
#                        NAME, and whoever uses KAFKA_PORT, may do everything, others what they are given
#   KAFKA_REAUTH_MS=0    connections.max.reauth.ms of that listener; 0 = users stay logged in
# Needs Java 17 and Maven, with KAFKA_USER openssl. The first start fetches the jars with Maven into target/lib.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
port=${KAFKA_PORT:-19092}
brokers=${KAFKA_BROKERS:-1}
dir=${KAFKA_DIR:-$here/target/data}
min_insync=${KAFKA_MIN_INSYNC:-1}
heap=${KAFKA_HEAP:-512m}
session_ms=${KAFKA_SESSION_MS:-9000}
wait_s=${KAFKA_WAIT:-90}
user=${KAFKA_USER:-}
reauth_ms=${KAFKA_REAUTH_MS:-0}

die() { echo "kafka.sh: $*" >&2; exit 1; }

case $brokers in 1 | 3) ;; *) die "KAFKA_BROKERS is $brokers, want 1 or 3" ;; esac
[[ $port =~ ^[0-9]+$ ]] && ((port > 0 && port < 65200)) || die "KAFKA_PORT is $port, want a port number below 65200"

[[ -z $user || $user =~ ^[A-Za-z0-9_-]+:[A-Za-z0-9_-]+$ ]] || die "KAFKA_USER must be NAME:PASSWORD, of letters and digits"

# The brokers that the command is about.
chosen=("${@:2}")
if ((${#chosen[@]} == 0)); then for ((n = 0; n < brokers; n++)); do chosen+=("$n"); done; fi
for n in "${chosen[@]}"; do
	[[ $n =~ ^[0-9]+$ ]] && ((n < brokers)) || die "broker $n: want a number below KAFKA_BROKERS, which is $brokers"
done

fetch() {
	compgen -G "$here/target/lib/kafka_2.13-*.jar" >/dev/null && return
	echo "kafka.sh: fetching the broker with Maven" >&2
	mvn -q -B -ntp -f "$here/pom.xml" dependency:copy-dependencies >&2 </dev/null
}

jvm() { java -cp "$here/target/lib/*" -Dlog4j2.configurationFile="file:$here/log4j2.yaml" "$@"; }

# pid_of N prints the pid of broker N if it runs and is ours: the command line must name our own properties file,
# since a pid file may outlive its process and the number may be another's by now.
pid_of() {
	local pid file=$dir/broker-$1/pid
	[[ -r $file ]] && pid=$(<"$file") && [[ $pid =~ ^[0-9]+$ ]] || return 1
	ps -o args= -p "$pid" 2>/dev/null | grep -qF "$dir/broker-$1/server.properties" && echo "$pid"
}

# answers PORT sends an ApiVersions request (key 18, version 0) and reads the first byte of the answer.
answers() {
	(
		exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
		printf '\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff' >&3
		timeout 5 head -c 1 <&3 | wc -c | grep -qx 1
	) 2>/dev/null
}

# certificates makes an authority and, signed by it, the brokers' certificate for 127.0.0.1.
certificates() {
	[[ -z $user || -s $dir/broker.pem ]] && return
	local out=$dir/certificates
	mkdir -p "$out"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=local-kafka-ca \
		-keyout "$out/ca.key" -out "$dir/ca.pem" 2>/dev/null
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=127.0.0.1 \
		-keyout "$out/broker.key" -out "$out/broker.csr" 2>/dev/null
	openssl x509 -req -in "$out/broker.csr" -CA "$dir/ca.pem" -CAkey "$out/ca.key" -CAcreateserial -days 3650 \
		-extfile <(echo "subjectAltName=IP:127.0.0.1,DNS:localhost") -out "$out/broker.crt" 2>/dev/null
	cat "$out/broker.key" "$out/broker.crt" "$dir/ca.pem" >"$dir/broker.pem"
}

# secure prints the settings of a broker's listener with TLS and SASL.
secure() {
	local name=${user%%:*} password=${user#*:} login=org.apache.kafka.common.security
	cat <<-EOF
		ssl.keystore.type=PEM
		ssl.keystore.location=$dir/broker.pem
		sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
		authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
		super.users=User:ANONYMOUS;User:$name
		listener.name.sasl_ssl.connections.max.reauth.ms=$reauth_ms
		listener.name.sasl_ssl.plain.sasl.jaas.config=$login.plain.PlainLoginModule required user_$name="$password";
		listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=$login.scram.ScramLoginModule required;
		listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=$login.scram.ScramLoginModule required;
	EOF
}

configure() { # N
	local i=$1 n voters="" listener=""
	[[ -z $user ]] || listener=",SASL_SSL://127.0.0.1:$((port + 300 + i))"
	for ((n = 0; n < brokers; n++)); do voters+="${voters:+,}$((n + 1))@127.0.0.1:$((port + 100 + n))"; done
	mkdir -p "$dir/broker-$i"
	cat >"$dir/broker-$i/server.properties" <<-EOF
		process.roles=broker,controller
		node.id=$((i + 1))
		controller.quorum.voters=$voters
		listeners=PLAINTEXT://127.0.0.1:$((port + i)),CONTROLLER://127.0.0.1:$((port + 100 + i))$listener
		advertised.listeners=PLAINTEXT://127.0.0.1:$((port + i))$listener
		listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL
		inter.broker.listener.name=PLAINTEXT
		controller.listener.names=CONTROLLER
		log.dirs=$dir/broker-$i/data
		num.partitions=4
		default.replication.factor=$brokers
		offsets.topic.replication.factor=$brokers
		offsets.topic.num.partitions=4
		transaction.state.log.replication.factor=$brokers
		transaction.state.log.num.partitions=4
		transaction.state.log.min.isr=1
		share.coordinator.state.topic.replication.factor=$brokers
		share.coordinator.state.topic.min.isr=1
		group.initial.rebalance.delay.ms=0
		auto.create.topics.enable=false
		message.max.bytes=16777216
		replica.fetch.max.bytes=16777216
		log.retention.ms=-1
		min.insync.replicas=$min_insync
		broker.session.timeout.ms=$session_ms
	EOF
	[[ -z $user ]] || secure >>"$dir/broker-$i/server.properties"
}

start() {
	local i pid id deadline scram=()
	fetch
	mkdir -p "$dir"
	certificates
	for i in SCRAM-SHA-256 SCRAM-SHA-512; do
		[[ -z $user ]] || scram+=(--add-scram "$i=[name=${user%%:*},password=${user#*:}]")
	done
	[[ -s $dir/cluster-id ]] || jvm kafka.tools.StorageTool random-uuid 2>/dev/null | tail -n 1 >"$dir/cluster-id"
	id=$(<"$dir/cluster-id")
	for i in "${chosen[@]}"; do
		if pid=$(pid_of "$i"); then
			echo "broker $i already runs, pid $pid" >&2
			continue
		fi
		if answers "$((port + i))"; then die "port $((port + i)) is taken by another broker"; fi
		configure "$i"
		jvm kafka.tools.StorageTool format --ignore-formatted -t "$id" -c "$dir/broker-$i/server.properties" \
			"${scram[@]}" >"$dir/broker-$i/format.log" 2>&1 || { cat "$dir/broker-$i/format.log" >&2; die "format broker $i"; }
		# exec, so that the pid is the JVM's own; setsid, so that a Ctrl-C in the terminal does not reach it.
		# The pid file comes by a rename: who found it made and still empty would say that the broker has ended.
		setsid bash -c 'echo $$ >"$1.new" && mv "$1.new" "$1"; shift; exec "$@"' _ "$dir/broker-$i/pid" \
			java -Xms"$heap" -Xmx"$heap" -XX:+UseG1GC -cp "$here/target/lib/*" \
			-Dlog4j2.configurationFile="file:$here/log4j2.yaml" \
			kafka.Kafka "$dir/broker-$i/server.properties" </dev/null >"$dir/broker-$i/server.log" 2>&1 &
	done
	deadline=$((SECONDS + wait_s)) # the download and the formatting have had the time they needed
	for i in "${chosen[@]}"; do
		until answers "$((port + i))" && grep -q "Kafka Server started" "$dir/broker-$i/server.log"; do
			if ((SECONDS > deadline)); then
				tail -n 30 "$dir/broker-$i/server.log" >&2
				die "broker $i did not answer on port $((port + i)) within $wait_s s"
			fi
			if [[ -e $dir/broker-$i/pid ]] && ! pid_of "$i" >/dev/null && ! kill -0 "$(<"$dir/broker-$i/pid")" 2>/dev/null; then
				tail -n 30 "$dir/broker-$i/server.log" >&2
				die "broker $i ended while starting"
			fi
			sleep 0.3
		done
	done
	bootstrap
}

bootstrap() {
	local i out=""
	for ((i = 0; i < brokers; i++)); do out+="${out:+,}127.0.0.1:$((port + i))"; done
	echo "$out"
}

# end SIGNAL sends it to the brokers and waits until they have gone; after 20 s it is KILL.
end() {
	local i n pid pids=()
	for i in "${chosen[@]}"; do
		if pid=$(pid_of "$i"); then
			kill "-$1" "$pid"
			pids+=("$pid")
		fi
		rm -f "$dir/broker-$i/pid"
	done
	for pid in "${pids[@]}"; do
		for ((n = 0; n < 100; n++)); do
			kill -0 "$pid" 2>/dev/null || continue 2
			sleep 0.2
		done
		kill -KILL "$pid" 2>/dev/null || true
	done
}

stop() { end TERM; }

status() {
	local i pid rc=0
	for i in "${chosen[@]}"; do
		if pid=$(pid_of "$i") && answers "$((port + i))"; then
			echo "broker $i: pid $pid answers on 127.0.0.1:$((port + i))"
		else
			echo "broker $i: down"
			rc=1
		fi
	done
	return $rc
}

case ${1:-} in
start | stop | status) "$1" ;;
kill) end KILL ;;
*)
	echo "usage: kafka.sh start|stop|kill|status [N...]" >&2
	exit 2
	;;
esac
