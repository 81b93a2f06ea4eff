/** Uploads and downloads by the client library when connections break. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { getArtifact, putArtifact } from '../../client/artifacts.ts'
import { BatonError } from '../../client/errors.ts'
import { Transport } from '../../client/transport.ts'

const bytes = Buffer.from('the report of May')
const sha256 = createHash('sha256').update(bytes).digest('hex')
const record = {
  id: 'art_1',
  visibility: 'private',
  name: 'may.txt',
  mime_type: 'text/plain',
  size_bytes: bytes.length,
  sha256,
  created_at: '2026-01-01T00:00:00.000Z',
}
type Respond = (request: Request, attempt: number) => Promise<Response> | Response
/** Creates a transport without pauses between attempts. `respond` answers its requests. */
function transportTo(respond: Respond): {
  readonly transport: Transport
  readonly requests: Request[]
} {
  const requests: Request[] = []
  const transport = new Transport({
    url: ['http://a.test', 'http://b.test'],
    key: 'k',
    pause: async () => {},
    fetch: async (input, init) => {
      const request = new Request(input as string, init)
      requests.push(request)
      return respond(request, requests.length)
    },
  })
  return { transport, requests }
}
const refused = (status: number, code: string) =>
  Response.json({ error: { code, message: code } }, { status })
async function all(from: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of from) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
async function* source(): AsyncGenerator<Uint8Array, void> {
  yield bytes.subarray(0, 5)
  yield bytes.subarray(5)
}

t.test('an interrupted upload waits until the service has ended it', async (t) => {
  const { transport, requests } = transportTo((_, attempt) => {
    if (attempt === 1) throw new TypeError('fetch failed')
    return attempt < 5 ? refused(409, 'artifact_conflict') : Response.json(record)
  })
  t.strictSame(await putArtifact(transport, { open: source }, { name: 'may.txt' }), record)
  t.equal(new Set(requests.map(({ headers }) => headers.get('idempotency-key'))).size, 1)

  const never = transportTo((_, attempt) => {
    if (attempt === 1) throw new TypeError('fetch failed')
    return refused(409, 'artifact_conflict')
  })
  await t.rejects(putArtifact(never.transport, { open: source }, { name: 'may.txt' }), {
    code: 'artifact_conflict',
  })
  t.equal(never.requests.length, 26, 'the wait is limited')

  const other = transportTo(() => refused(409, 'artifact_conflict'))
  await t.rejects(putArtifact(other.transport, { open: source }, { name: 'may.txt' }), {
    code: 'artifact_conflict',
  })
  t.equal(other.requests.length, 1, 'the key of another upload is refused at once')
})

t.test(
  'an upload is a form; its repeats have the same key and go to the next address',
  async (t) => {
    const forms: Record<string, unknown>[] = []
    const { transport, requests } = transportTo(async (request, attempt) => {
      const form = await request.formData()
      const file = form.get('file') as File
      forms.push({ ...Object.fromEntries(form), file: await file.text() })
      if (attempt === 1) throw new TypeError('fetch failed')
      return attempt === 2 ? refused(503, 'service_unavailable') : Response.json(record)
    })
    const sent: number[] = []
    const artifact = await putArtifact(
      transport,
      { open: source, size: bytes.length },
      {
        name: 'may.txt',
        mime: 'text/plain',
        metadata: { month: 5 },
        convert: true,
        lease: 'lease_1.q',
        advanced: (count) => sent.push(count),
      },
    )
    t.strictSame(artifact, record)
    t.strictSame(
      forms,
      Array(3).fill({
        name: 'may.txt',
        mime: 'text/plain',
        size_bytes: String(bytes.length),
        metadata: '{"month":5}',
        convert: 'true',
        file: bytes.toString(),
      }),
    )
    t.equal(new Set(requests.map(({ headers }) => headers.get('idempotency-key'))).size, 1)
    t.strictSame(
      requests.map(({ url }) => new URL(url).host),
      ['a.test', 'b.test', 'a.test'],
    )
    t.equal(requests[0]?.headers.get('x-service-lease-token'), 'lease_1.q')
    t.strictSame(sent, [5, 17, 5, 17, 5, 17])
  },
)

t.test('a refused upload is not repeated; an unreachable service is reported', async (t) => {
  const { transport, requests } = transportTo(() => refused(409, 'artifact_quota_exceeded'))
  await t.rejects(putArtifact(transport, { open: source }, { name: 'x' }), {
    code: 'artifact_quota_exceeded',
  })
  t.equal(requests.length, 1)
  const { transport: dead, requests: tries } = transportTo(() => {
    throw new TypeError('fetch failed')
  })
  await t.rejects(putArtifact(dead, { open: source }, { name: 'x' }), { code: 'unreachable' })
  t.equal(tries.length, 4)
})

t.test('an upload fails with the error of its source, and is not repeated', async (t) => {
  const missing = join(t.testdir({}), 'missing.pdf')
  const broken = async function* (): AsyncGenerator<Uint8Array, void> {
    yield bytes
    throw new Error('disk failure')
  }
  const once = () => {
    throw new Error('cannot be opened')
  }
  for (const [open, expected] of [
    [() => createReadStream(missing), { code: 'ENOENT' }],
    [broken, { message: 'disk failure' }],
    [once, { message: 'cannot be opened' }],
  ] as const) {
    const { transport, requests } = transportTo(async (request) => {
      await request.formData()
      return Response.json(record)
    })
    await t.rejects(putArtifact(transport, { open }, { name: 'x' }), expected)
    t.equal(requests.length, 1)
  }
})

t.test('a source is not opened before its bytes are sent', async (t) => {
  const missing = join(t.testdir({}), 'missing.pdf')
  let opened = 0
  const open = () => {
    opened++
    return createReadStream(missing)
  }
  const { transport } = transportTo(() => {
    throw new TypeError('fetch failed')
  })
  await t.rejects(putArtifact(transport, { open }, { name: 'x' }), { code: 'unreachable' })
  t.equal(opened, 0)
})

t.test('the source of an interrupted attempt is closed', async (t) => {
  let opened = 0
  let closed = 0
  const open = async function* (): AsyncGenerator<Uint8Array, void> {
    opened++
    try {
      yield* source()
    } finally {
      closed++
    }
  }
  const { transport } = transportTo(async ({ body }, attempt) => {
    const reader = body?.getReader()
    // The first chunk is the head of the form, the second one the beginning of the file.
    await reader?.read()
    await reader?.read()
    t.equal(opened, attempt)
    t.equal(closed, attempt - 1)
    throw new TypeError('fetch failed')
  })
  await t.rejects(putArtifact(transport, { open }, { name: 'x' }), { code: 'unreachable' })
  t.equal(opened, 4)
  await new Promise((done) => setImmediate(done))
  t.equal(closed, 4)
})

/**
 * Answers with the bytes from the requested start, and breaks the connection after `most` bytes.
 * With `isSilent`, the response then ends without an error.
 */
function content(request: Request, most: number, isSilent = false): Response {
  const start = Number(/^bytes=(\d+)-$/.exec(request.headers.get('range') ?? '')?.[1] ?? 0)
  if (start >= bytes.length)
    return Response.json(
      { error: { code: 'range_not_satisfiable', message: '' } },
      { status: 416, headers: { 'content-range': `bytes */${bytes.length}` } },
    )
  const part = bytes.subarray(start, start + most)
  const chunks = async function* (): AsyncGenerator<Uint8Array, void> {
    if (part.length > 0) yield part
    if (start + most < bytes.length && !isSilent) throw new TypeError('terminated')
  }
  const body = ReadableStream.from(chunks())
  return new Response(body, { status: start > 0 ? 206 : 200 })
}
const isContent = ({ url }: Request) => url.endsWith('/content')

t.test('an interrupted download continues after the last byte', async (t) => {
  const { transport, requests } = transportTo((request) =>
    isContent(request) ? content(request, 5) : Response.json(record),
  )
  t.equal(await all(getArtifact(transport, 'art_1')), bytes.toString())
  t.strictSame(
    requests.filter(isContent).map(({ headers }) => headers.get('range')),
    [null, 'bytes=5-', 'bytes=10-', 'bytes=15-'],
  )
})

t.test('a response that ends early without an error is continued', async (t) => {
  for (const after of [0, 4]) {
    const { transport } = transportTo((request) =>
      isContent(request) ? content(request, 5, true) : Response.json(record),
    )
    t.equal(await all(getArtifact(transport, 'art_1', { after })), bytes.toString().slice(after))
  }
  const { transport, requests } = transportTo((request) =>
    isContent(request) ? content(request, 0, true) : Response.json(record),
  )
  await t.rejects(all(getArtifact(transport, 'art_1', { after: 4 })), {
    code: 'unreachable',
    message: /only 4 of 17 bytes arrived/,
  })
  t.equal(requests.filter(isContent).length, 4)
})

t.test('bytes that the caller has are not sent again, but checked', async (t) => {
  const { transport } = transportTo((request) =>
    isContent(request) ? content(request, 100) : Response.json(record),
  )
  const known = async function* (text: string) {
    yield Buffer.from(text)
  }
  t.equal(
    await all(getArtifact(transport, 'art_1', { after: 4, known: known('the ') })),
    'report of May',
  )
  t.equal(
    await all(
      getArtifact(transport, 'art_1', { after: bytes.length, known: known(bytes.toString()) }),
    ),
    '',
  )
  await t.rejects(all(getArtifact(transport, 'art_1', { after: 4, known: known('xxx ') })), {
    message: /damaged/,
  })
})

t.test('a service that ignores the range sends everything', async (t) => {
  const { transport } = transportTo((request) =>
    isContent(request) ? new Response(bytes) : Response.json(record),
  )
  t.equal(await all(getArtifact(transport, 'art_1', { after: 4 })), 'report of May')
})

t.test('a download that makes no progress ends', async (t) => {
  const { transport, requests } = transportTo((request) =>
    isContent(request) ? content(request, 0) : Response.json(record),
  )
  await t.rejects(all(getArtifact(transport, 'art_1')), { code: 'unreachable' })
  t.equal(requests.filter(isContent).length, 4)
  t.ok(new BatonError(0, 'unreachable', '') instanceof Error)
})

t.test('an upload whose source fails ends with the error of the source', async (t) => {
  const { transport, requests } = transportTo(async (request) => {
    await request.text()
    return Response.json(record)
  })
  const failing = async function* (): AsyncGenerator<Uint8Array, void> {
    yield bytes.subarray(0, 5)
    throw new Error('disk failure')
  }
  await t.rejects(putArtifact(transport, { open: failing }, { name: 'x' }), {
    name: 'Error',
    message: 'disk failure',
  })
  t.equal(requests.length, 1)
})

t.test('an aborted upload ends with the reason of the signal', async (t) => {
  for (const tries of [1, 4]) {
    const stop = new AbortController()
    const reason = new Error('enough')
    const transport = new Transport({
      url: 'http://a.test',
      key: 'k',
      tries,
      pause: () => new Promise(() => {}),
      fetch: async () => {
        stop.abort(reason)
        throw new TypeError('fetch failed')
      },
    })
    const options = { name: 'x', signal: stop.signal }
    await t.rejects(putArtifact(transport, { open: source }, options), reason)
  }
})

t.test('an upload that is aborted between two attempts is not repeated', async (t) => {
  const stop = new AbortController()
  const transport = new Transport({
    url: 'http://a.test',
    key: 'k',
    pause: () => {
      stop.abort(new Error('enough'))
      return new Promise(() => {})
    },
    fetch: async () => {
      throw new TypeError('fetch failed')
    },
  })
  const options = { name: 'x', signal: stop.signal }
  await t.rejects(putArtifact(transport, { open: source }, options), { message: 'enough' })
})
