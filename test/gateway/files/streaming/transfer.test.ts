/**
 * Uploads and downloads over real sockets: every byte arrives once and in order, the faster side
 * waits for the slower one, and a failed transfer is never mistaken for a complete one.
 */
import uWS, { type HttpRequest, type HttpResponse } from 'uWebSockets.js'
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { createUploadTurns, Upload, UploadCut } from '../../../../gateway/files/upload.ts'
import { Exchange } from '../../../../gateway/http/respond.ts'

const MIB = 1_048_576
const turns = createUploadTurns({
  later: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
})

async function serve(
  t: Test,
  handler: (res: HttpResponse, req: HttpRequest) => void,
): Promise<number> {
  const app = uWS.App().any('/*', handler)
  const token = await new Promise<uWS.us_listen_socket>((resolve, reject) =>
    app.listen('127.0.0.1', 0, (one) => (one ? resolve(one) : reject(new Error('cannot listen')))),
  )
  t.teardown(() => app.close())
  return uWS.us_socket_local_port(token as never)
}
const client = (t: Test, port: number): Socket => {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  return socket
}
const received = (socket: Socket): Promise<Buffer> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = []
    socket
      .on('data', (chunk) => chunks.push(chunk))
      .once('close', () => resolve(Buffer.concat(chunks)))
  })
const bodyOf = (answer: Buffer): Buffer => answer.subarray(answer.indexOf('\r\n\r\n') + 4)

/** Serves a route that reads an upload with `read` and answers with the result as text. */
const reading = (t: Test, limit: number, read: (upload: Upload) => Promise<string>) =>
  serve(t, (res) => {
    const upload = new Upload(res, limit)
    const exchange = new Exchange(res, 'req_1', () => {})
    exchange.onClose(() => upload.gone())
    void read(upload).then((text) => exchange.answer({ status: 200, text }, false, true))
  })

for (const chunked of [false, true])
  t.test(`an upload ${chunked ? 'without' : 'with'} a length to a slow reader`, async (t) => {
    const bytes = randomBytes(24 * MIB)
    const read: Buffer[] = []
    let begun = () => {}
    let go = () => {}
    const started = new Promise<void>((resolve) => void (begun = resolve))
    const released = new Promise<void>((resolve) => void (go = resolve))
    const port = await reading(t, bytes.length, async (upload) => {
      for await (const chunk of upload.chunks(turns)) {
        if (read.length === 0) {
          begun()
          await released
        }
        read.push(Buffer.from(chunk))
      }
      return 'done'
    })
    const socket = client(t, port)
    const answer = received(socket)
    socket.write(
      `POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${
        chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${bytes.length}`
      }\r\n\r\n`,
    )
    for (let at = 0; at < bytes.length; at += MIB) {
      const chunk = bytes.subarray(at, at + MIB)
      if (chunked) socket.write(`${chunk.length.toString(16)}\r\n`)
      socket.write(chunk)
      if (chunked) socket.write('\r\n')
    }
    if (chunked) socket.write('0\r\n\r\n')
    await started
    // The buffers of both sockets fill while the reader waits. Then nothing more is sent.
    for (let before = -1; socket.bytesWritten - socket.writableLength !== before; ) {
      before = socket.bytesWritten - socket.writableLength
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    t.ok(socket.writableLength > 0, 'the client waits for the reader')
    go()
    t.match((await answer).toString(), /\r\n\r\ndone$/)
    t.ok(Buffer.concat(read).equals(bytes), 'all of it, once, in order')
  })

t.test('many uploads to slow readers, and silent clients', async (t) => {
  const uploads: Upload[] = []
  let held = 0
  let most = 0
  let go = () => {}
  const released = new Promise<void>((resolve) => void (go = resolve))
  const port = await reading(t, 4 * MIB, async (upload) => {
    uploads.push(upload)
    let size = 0
    try {
      for await (const chunk of upload.chunks(turns)) {
        size += chunk.length
        held += chunk.length
        most = Math.max(most, held + uploads.reduce((sum, { unread }) => sum + unread, 0))
        await released
        held -= chunk.length
      }
    } catch (error) {
      if (!(error instanceof UploadCut)) throw error
    }
    return String(size)
  })
  const head = `POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${4 * MIB}\r\n\r\n`
  const silent = Array.from({ length: 40 }, () => client(t, port))
  for (const socket of silent) socket.write(head)
  const bytes = randomBytes(4 * MIB)
  const answers = Array.from({ length: 60 }, () => {
    const socket = client(t, port)
    socket.write(head)
    socket.write(bytes)
    return received(socket)
  })
  // Wait until the maximum number of held bytes stops growing.
  for (let before = -1; most !== before || most < MIB; ) {
    before = most
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
  t.ok(most <= 16 * MIB, `${most} bytes of 240 MiB are held`)
  go()
  for (const answer of await Promise.all(answers))
    t.match(answer.toString(), /\r\n\r\n4194304$/, 'silent clients delay no others')
  for (const socket of silent) socket.destroy()
})

t.test('an upload that is cut', async (t) => {
  const cuts: unknown[] = []
  let ended = () => {}
  const port = await reading(t, MIB, async (upload) => {
    try {
      for await (const _ of upload.chunks(turns));
    } catch (error) {
      cuts.push(error instanceof UploadCut ? error.reason : error)
      await upload.discard()
    }
    ended()
    return 'refused'
  })
  const large = client(t, port)
  const answer = received(large)
  large.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${8 * MIB}\r\n\r\n`)
  large.write(randomBytes(8 * MIB))
  t.match((await answer).toString(), /\r\n\r\nrefused$/, 'the rest is discarded before the answer')
  const gone = client(t, port)
  const end = new Promise<void>((resolve) => void (ended = resolve))
  gone.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nsome`, () => gone.destroy())
  await end
  t.same(cuts, ['too_large', 'disconnected'])
})

t.test('a download at the speed of a slow client', async (t) => {
  const bytes = randomBytes(48 * MIB)
  let given = 0
  const port = await serve(t, (res) => {
    const chunks = async function* () {
      for (let at = 0; at < bytes.length; at += 250_000) {
        const chunk = bytes.subarray(at, at + 250_000)
        given += chunk.length
        yield chunk
      }
    }
    new Exchange(res, 'req_1', () => {}).answer(
      { status: 206, content: { size: bytes.length, chunks: chunks() }, type: 'a/b' },
      false,
      false,
    )
  })
  const socket = client(t, port)
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await new Promise<void>((resolve) => socket.once('readable', resolve))
  for (let before = -1; given !== before; ) {
    before = given
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  t.ok(given < bytes.length, `${given} bytes are read while the client does not read`)
  const answer = await received(socket)
  t.match(answer.toString('latin1', 0, 300), /^HTTP\/1.1 206 .*\r\nContent-Length: 50331648\r\n/s)
  t.ok(bodyOf(answer).equals(bytes), 'all of it, once, in order')
})

t.test('content that is empty, fails, or whose client goes away', async (t) => {
  const outcomes: string[] = []
  const source = async function* (path: string) {
    try {
      for (let n = 0; path === '/endless' || n < 4; n++) yield Buffer.alloc(100_000, 97)
      if (path === '/fails') throw new Error('expected')
    } finally {
      outcomes.push(path)
    }
  }
  const port = await serve(t, (res, req) => {
    const path = req.getUrl()
    const size = { '/empty': 0, '/endless': 1e12 }[path] ?? 500_000
    const head = req.getMethod() === 'head'
    new Exchange(res, 'req_1', () => {}).answer(
      { status: 200, content: { size, chunks: source(path) } },
      head,
      false,
    )
  })
  const ask = (method: string, path: string): Promise<Buffer> => {
    const socket = client(t, port)
    socket.write(`${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    return received(socket)
  }
  t.match((await ask('GET', '/empty')).toString(), /Content-Length: 0\r\n(.+\r\n)*\r\n$/)
  t.match((await ask('HEAD', '/fails')).toString(), /Content-Length: 500000\r\n(.+\r\n)*\r\n$/)
  t.same(outcomes, [], 'neither reads the source')
  for (const path of ['/fails', '/short'])
    t.equal(bodyOf(await ask('GET', path)).length, 400_000, `${path}: the connection is closed`)
  const socket = client(t, port)
  socket.write('GET /endless HTTP/1.1\r\nHost: x\r\n\r\n')
  await new Promise<void>((resolve) => socket.once('data', () => resolve()))
  socket.destroy()
  while (!outcomes.includes('/endless')) await new Promise((resolve) => setTimeout(resolve, 10))
  t.same(outcomes, ['/fails', '/short', '/endless'], 'the source of a client that is gone is ended')
})
