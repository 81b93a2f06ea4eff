/** The answers of executors to requests for embeddings. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { hashedEmbedding } from '../../../nodes/executor/embedding/hashed.ts'
import { createEmbeddingService, type EmbedTexts } from '../../../nodes/executor/embedding/serve.ts'
import { ExecutorFault } from '../../../nodes/executor/faults.ts'
import { remoteEmbedding } from '../../../nodes/executor/models/embedding.ts'
import { type EmbeddingSettings, readModels } from '../../../nodes/models.ts'
import { createEmbedder } from '../../../nodes/roles/embed.ts'
import {
  type EmbeddingAnswer,
  type EmbeddingRequest,
  isFailure,
} from '../../../protocol/tables/semantic.ts'
import { silentLog } from '../../support/memory.ts'

const MODEL = 'a/b'
const serving = (embed: EmbedTexts) =>
  createEmbeddingService({ model: MODEL, embed, log: silentLog })
const asking = (texts: readonly string[], more: Partial<EmbeddingRequest> = {}) => ({
  model: MODEL,
  purpose: 'rows' as const,
  texts,
  ...more,
})
const decoded = (answer: EmbeddingAnswer): number[][] =>
  isFailure(answer)
    ? []
    : answer.vectors.map((text) => {
        const bytes = Buffer.from(text, 'base64')
        return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i))
      })

t.test('vectors have the length 1', async (t) => {
  const { answer } = serving(async () => [
    [3, 4],
    [0, 0],
    [0, -2],
  ])
  const [first, zero, last] = decoded(await answer(asking(['x', 'y', 'z'])))
  t.strictSame(
    first?.map((value) => value.toFixed(5)),
    ['0.60000', '0.80000'],
  )
  t.strictSame(
    [zero, last],
    [
      [0, 0],
      [0, -1],
    ],
  )
})
t.test('invalid answers of providers are failures', async (t) => {
  const answers: number[][][] = [[], [[1]], [[1], []], [[1], [1, 2]], [[1], [Number.NaN]], [[], []]]
  for (const vectors of answers)
    t.match(await serving(async () => vectors).answer(asking(['x', 'y'])), {
      failed: 'invalid_response',
    })
})
t.test('a fault of the provider is the answer', async (t) => {
  const failing = (is: 'rate_limited' | 'provider_refused', after?: number) =>
    serving(async () => {
      throw new ExecutorFault(is, 'why', after)
    }).answer(asking(['x']))
  t.strictSame(await failing('rate_limited', 2000), {
    failed: 'rate_limited',
    message: 'why',
    retry_after: 2000,
  })
  t.match(await failing('provider_refused'), { failed: 'provider_refused', refused: true })
})
t.test('requests for another model, and too large ones, are refused', async (t) => {
  const { answer } = serving(async () => t.fail('nothing is requested') as never)
  t.match(await answer(asking(['x'], { model: 'c' })), { failed: 'model_unavailable' })
  t.match(await answer(asking(new Array<string>(33).fill('x'))), { refused: true })
})
t.test('requests are bounded, and queries have places of their own', async (t) => {
  const ends: (() => void)[] = []
  let running = 0
  const service = serving(async (texts) => {
    running++
    await new Promise<void>((resolve) => ends.push(resolve))
    running--
    return texts.map(() => [1])
  })
  const rows = Array.from({ length: 21 }, () => service.answer(asking(['x'])))
  t.match(await rows[20], { failed: 'busy' }, '4 run and 16 wait')
  await new Promise(setImmediate)
  t.equal(running, 4)
  const query = service.answer(asking(['q'], { purpose: 'query' }))
  await new Promise(setImmediate)
  t.equal(running, 5)
  ends.pop()?.()
  t.match(await query, { vectors: [String] })
  for (let i = 0; i < 20; i++) {
    ends.shift()?.()
    await new Promise(setImmediate)
    t.ok(running <= 4)
  }
  t.ok((await Promise.all(rows.slice(0, 20))).every((answer) => !isFailure(answer)))
  service.stop()
  t.match(await service.answer(asking(['x'])), { failed: 'stopped' })
})
t.test('the model for tests knows a few synonyms', async (t) => {
  const [car, auto, baker] = await hashedEmbedding(
    ['A car', 'automobile a', 'baker'],
    new AbortController().signal,
  )
  t.strictSame(car, auto)
  t.notSame(car, baker)
})

/**
 * Starts an embedding server. `answer` determines its responses, and `seen` records the requests.
 */
async function server(
  t: { teardown(end: () => unknown): void },
  answer: (body: Open) => { status: number; body: unknown },
) {
  const seen: { path: string; authorization: string | undefined; body: Open }[] = []
  const http: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Open
    seen.push({ path: request.url ?? '', authorization: request.headers.authorization, body })
    const { status, body: sent } = answer(body)
    response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '3' })
    response.end(JSON.stringify(sent))
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  t.teardown(() => http.close())
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1`, seen }
}
type Open = Record<string, unknown>

const settingsOf = (url: string, more: Open = {}, kind = 'openai-compatible') => {
  const read = readModels(
    JSON.stringify({
      providers: [{ provider: 'local', kind, base_url: url, key: 'env:THE_KEY', models: [] }],
      embedding: { model: 'local/small', ...more },
    }),
    'Service',
  )
  if ('wrong' in read) throw new Error(read.wrong)
  return read.embedding as EmbeddingSettings
}
const remote = (settings: EmbeddingSettings, env = { THE_KEY: 'sk-secret' }, timeout = 5000) =>
  createEmbeddingService({
    model: settings.id,
    embed: remoteEmbedding({ settings, env, timeout, now: () => 0 }),
    log: silentLog,
  })

t.test('embeddings of an OpenAI-compatible server', async (t) => {
  const vectors = ({ input }: Open) => ({
    status: 200,
    body: {
      object: 'list',
      data: (input as string[]).map((text, index) => ({ index, embedding: [text.length, 0] })),
    },
  })
  for (const kind of ['openai-compatible', 'openai']) {
    const { url, seen } = await server(t, vectors)
    const settings = settingsOf(url, { dimensions: 2 }, kind)
    t.equal(settings.id, 'local/small:2')
    const answer = await remote(settings).answer(asking(['a', 'bb'], { model: settings.id }))
    t.strictSame(decoded(answer), [
      [1, 0],
      [1, 0],
    ])
    t.match(seen, [
      {
        path: '/v1/embeddings',
        authorization: 'Bearer sk-secret',
        body: { model: 'small', input: ['a', 'bb'], dimensions: 2 },
      },
    ])
  }
})
t.test('errors of a server are named, without the key', async (t) => {
  const failing = async (status: number) => {
    const { url } = await server(t, () => ({
      status,
      body: { error: { message: 'the key sk-secret is bad' } },
    }))
    return remote(settingsOf(url)).answer(asking(['a'], { model: 'local/small' }))
  }
  t.match(await failing(429), { failed: 'rate_limited', retry_after: 3000 })
  t.match(await failing(503), { failed: 'provider_error' })
  const refused = await failing(400)
  t.match(refused, { failed: 'provider_refused', refused: true })
  t.match(await failing(404), { failed: 'model_unavailable', refused: undefined })
  t.match(await failing(401), { failed: 'credentials_unavailable', refused: undefined })
  t.notMatch(JSON.stringify(refused), /sk-secret/)
  const gone = remote(settingsOf('http://127.0.0.1:9/v1'))
  t.match(await gone.answer(asking(['a'], { model: 'local/small' })), {
    failed: 'provider_unreachable',
  })
  const keyless = remote(settingsOf('http://127.0.0.1:9/v1'), { THE_KEY: '' })
  t.match(await keyless.answer(asking(['a'], { model: 'local/small' })), {
    failed: 'credentials_unavailable',
  })
})
t.test('a server that does not answer', async (t) => {
  const http = createServer(() => {})
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    http.closeAllConnections()
    http.close()
  })
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1`
  const answer = await remote(settingsOf(url), undefined, 50).answer(
    asking(['a'], { model: 'local/small' }),
  )
  t.match(answer, { failed: 'provider_timeout' })
})

t.test('the client keeps the vectors of recent queries', async (t) => {
  const requests: EmbeddingRequest[] = []
  let reply: EmbeddingAnswer | 'timeout' = { vectors: ['AACAPw=='] }
  const { query, rows } = createEmbedder(
    {
      request: async (_: string, message: unknown) => {
        requests.push(message as EmbeddingRequest)
        return reply === 'timeout' ? reply : { answer: reply }
      },
    },
    { id: MODEL, max_characters: 100 },
  )
  t.match(await query('a'), { vectors: ['AACAPw=='] })
  reply = 'timeout'
  t.match(await query('a'), { vectors: ['AACAPw=='] })
  t.match(await query('b'), { failed: 'no_answer' })
  reply = { vectors: ['AAAAAA=='] }
  t.match(await query('b'), { vectors: ['AAAAAA=='] }, 'failures are not kept')
  await rows(['a'])
  t.strictSame(
    requests.map(({ purpose, texts }) => `${purpose} ${texts}`),
    ['query a', 'query b', 'query b', 'rows a'],
  )
  for (let i = 0; i < 500; i++) await query(`other ${i}`)
  await query('a')
  t.equal(requests.length, 505, 'the oldest is forgotten')
})

t.test('the setting', (t) => {
  const wrong = (embedding: object, providers: readonly object[] = []) => {
    const read = readModels(JSON.stringify({ providers, embedding }), 'Service')
    return 'wrong' in read ? read.wrong : undefined
  }
  t.equal(wrong({ model: 'service/hashed' }), undefined)
  t.match(wrong({ model: 'service/scripted' }), /no such model/)
  t.match(wrong({ model: 'none/x' }), /no provider has it/)
  t.match(wrong({ model: 'service' }), /provider\/model/)
  t.match(
    wrong({ model: 'c/x' }, [{ provider: 'c', kind: 'anthropic', models: [] }]),
    /no such model/,
  )
  t.match(wrong({ model: 'service/hashed', dimensions: 0 }), /dimensions/)
  const read = readModels('', 'Service')
  t.ok(!('wrong' in read) && read.embedding === undefined, 'none by default')
  const listed = readModels(
    JSON.stringify({
      providers: [{ provider: 'e', kind: 'openai', key: 'env:A', models: [] }],
      embedding: { model: 'e/x' },
    }),
    'Service',
  )
  if ('wrong' in listed) throw new Error(listed.wrong)
  t.strictSame(
    listed.models.providers.map(({ provider }) => provider),
    ['service'],
    'a provider without models is not listed',
  )
  t.end()
})
