/**
 * The memory used by 100 uploads and by 100 downloads over real sockets and a real nats-server: the
 * live bytes of the process, clients included, and the buffers in use.
 */

import uWS, { type HttpResponse } from 'uWebSockets.js'
import { createHash, randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Objm } from '@nats-io/obj'
import t from 'tap'
import { arrivingParts } from '../../../gateway/files/streaming/form.ts'
import { createUploadTurns, Upload } from '../../../gateway/files/upload.ts'
import { Exchange } from '../../../gateway/http/respond.ts'
import { noTransfers, readObject, writeObject } from '../../../nodes/nats/objects.ts'
import { provision } from '../../../nodes/nats/server/provision.ts'
import { names } from '../../../protocol/subjects.ts'
import { startStore } from '../support/store.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const MIB = 1_048_576
const CLIENTS = 100
/**
 * The number of uploaded chunks between two measurements, of 3,250 chunks in total. Measurements
 * are rare, because each collects the garbage of all test files in this process.
 */
const CHUNKS = 400
const { one: nats } = await startStore('2m')
await provision(nats, { partitions: 1, shards: 4, replicas: 1 })
const store = await new Objm(nats.streams).open(names.blobs)
const living = () => {
  collect()
  return process.memoryUsage().arrayBuffers
}

/** Serves one route and returns a function that connects clients to it. */
async function serve(handler: (res: HttpResponse) => void): Promise<() => Socket> {
  const app = uWS.App().any('/*', handler)
  const token = await new Promise<uWS.us_listen_socket>((resolve, reject) =>
    app.listen('127.0.0.1', 0, (one) => (one ? resolve(one) : reject(new Error('cannot listen')))),
  )
  t.teardown(() => app.close())
  const port = uWS.us_socket_local_port(token as never)
  return () => connect(port, '127.0.0.1')
}
/** Reads a complete answer. Returns the start, the SHA-256 and the size of its body. */
async function bodyOf(socket: Socket) {
  const hash = createHash('sha256')
  let begun = false
  let [start, size] = ['', 0]
  for await (const bytes of socket as AsyncIterable<Buffer>) {
    // The headers arrive in one chunk.
    const body = begun ? bytes : bytes.subarray(bytes.indexOf('\r\n\r\n') + 4)
    if (size === 0) start = body.toString('latin1', 0, 200)
    begun = true
    hash.update(body)
    size += body.length
  }
  return { start, size, sha256: hash.digest('hex') }
}

async function* whole(bytes: Buffer): AsyncGenerator<Buffer, void> {
  yield bytes
}

t.test('100 uploads', async (t) => {
  const shared = noTransfers()
  const turns = createUploadTurns({
    later: (ms, run) => {
      const timer = setTimeout(run, ms)
      return () => clearTimeout(timer)
    },
  })
  const idle = living()
  let [slices, alive, count] = [0, 0, 0]
  const measured = async function* (bytes: AsyncIterable<Buffer>) {
    for await (const chunk of bytes) {
      if (++slices % CHUNKS === 0) alive = Math.max(alive, living() - idle)
      yield chunk
    }
  }
  const store = async (upload: Upload): Promise<string> => {
    for await (const part of arrivingParts(upload.chunks(turns), 'b')) {
      const id = `up${count++}`
      const bytes = measured(part.bytes)
      return (await writeObject(nats, { bucket: names.blobs, name: id, id }, bytes, shared)).sha256
    }
    return 'no part'
  }
  const client = await serve((res) => {
    const upload = new Upload(res, 16 * MIB)
    const exchange = new Exchange(res, 'req_1', () => {})
    exchange.onClose(() => upload.gone())
    const answer = (text: string) => exchange.answer({ status: 200, text }, false, true)
    void store(upload).then(answer, (error: unknown) => answer(String(error)))
  })
  const file = randomBytes(MIB)
  const body = Buffer.concat([
    Buffer.from('--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'),
    file,
    Buffer.from('\r\n--b--\r\n'),
  ])
  const answers = Array.from({ length: CLIENTS }, () => {
    const socket = client()
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`)
    socket.write(body)
    return bodyOf(socket)
  })
  const sha256 = createHash('sha256').update(file).digest('hex')
  for (const { start } of await Promise.all(answers)) t.equal(start, sha256, 'stored')
  t.ok(alive > 0 && alive < 64 * MIB, `${Math.round(alive / MIB)} MiB are alive at most`)
  t.ok(shared.pool.most <= CLIENTS + 16, `${shared.pool.most} chunks of 256 KiB`)
  t.same([shared.pool.used, turns.slices.used], [0, 0], 'all buffers were given back')
})

t.test('100 downloads of clients that do not read for a while', async (t) => {
  const shared = noTransfers()
  const file = randomBytes(6 * MIB)
  const object = { bucket: names.blobs, name: 'down', id: 'down' }
  await writeObject(nats, object, whole(file), shared)
  const info = await store.info('down')
  if (!info) throw new Error('the file is missing')
  const idle = living()
  const failures: unknown[] = []
  let [begun, given] = [0, 0]
  const reported = async function* () {
    let first = true
    try {
      for await (const chunk of readObject(
        nats,
        { store, bucket: names.blobs, info },
        { start: 0, end: file.length },
        shared,
      )) {
        if (first) begun++
        first = false
        given++
        yield chunk
      }
    } catch (error) {
      failures.push(error)
      throw error
    }
  }
  const client = await serve((res) =>
    new Exchange(res, 'req_1', () => {}).answer(
      { status: 200, content: { size: file.length, chunks: reported() } },
      false,
      true,
    ),
  )
  const sockets = Array.from({ length: CLIENTS }, () => {
    const socket = client()
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    return socket
  })
  // Wait until all readers are waiting for their clients.
  for (let last = -1; begun < CLIENTS || given !== last; ) {
    last = given
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
  const alive = living() - idle
  t.ok(alive < 64 * MIB, `${Math.round(alive / MIB)} MiB are alive`)
  t.ok(given < 24 * CLIENTS, 'clients have not received everything')
  const sha256 = createHash('sha256').update(file).digest('hex')
  for (const body of await Promise.all(sockets.map(bodyOf)))
    t.match(body, { sha256, size: file.length })
  t.same(failures, [], 'no read failed')
  t.ok(shared.pool.most <= CLIENTS + 16, `${shared.pool.most} chunks of 256 KiB`)
  t.equal(shared.pool.used, 0, 'all buffers were given back')
})
