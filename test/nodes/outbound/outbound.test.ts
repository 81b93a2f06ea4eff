/**
 * Outbound requests for users: the guard against non-public addresses in every spelling, the
 * limits, the signatures, and sealed secrets.
 */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { wrongNetwork } from '../../../nodes/outbound/addresses.ts'
import { AddressRefused, createGuard } from '../../../nodes/outbound/guard.ts'
import type { Resolve } from '../../../nodes/outbound/lookups.ts'
import { createPost, type Sending } from '../../../nodes/outbound/post.ts'
import { signed } from '../../../nodes/outbound/sign.ts'
import { createVet } from '../../../nodes/outbound/vet.ts'
import { createSecretBox } from '../../../nodes/storage/secret-box.ts'

const hostOf = (url: string) => new URL(url).hostname
const nobody: Resolve = async () => {
  throw new Error('nobody is asked for a literal address')
}

t.test('concurrent requests to a host share one lookup of its name', async (t) => {
  const lookups: string[] = []
  let answer = (_: readonly string[]): void => {}
  const guard = createGuard([], (name) => {
    lookups.push(name)
    return new Promise((resolve) => {
      answer = resolve
    })
  })
  const checks = Array.from({ length: 10 }, () => guard.check('slow.example'))
  t.strictSame(lookups, ['slow.example'])
  answer(['93.184.216.34'])
  for (const found of await Promise.all(checks)) t.match(found, [{ address: '93.184.216.34' }])
  const next = guard.check('slow.example')
  t.equal(lookups.length, 2, 'the result is not kept')
  answer(['10.0.0.1'])
  await t.rejects(next, AddressRefused)
})

t.test('every spelling of a non-public address is refused', async (t) => {
  const guard = createGuard([], nobody)
  const inside = [
    '127.0.0.1',
    '127.1',
    '127.0.0.1.',
    '2130706433',
    '0x7f.1',
    '0x7f000001',
    '0177.0.0.1',
    '017700000001',
    '127.255.255.254',
    '0.0.0.0',
    '0',
    '10.1.2.3',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '192.0.0.8',
    '192.0.2.1',
    '192.88.99.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '%31%32%37.0.0.1',
    '①②⑦.0.0.1',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::ffff:10.0.0.1]',
    '[::127.0.0.1]',
    '[::ffff:0:127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[64:ff9b:1::7f00:1]',
    '[2002:7f00:1::]',
    '[2001::1]',
    '[fe80::1]',
    '[fc00::1]',
    '[fd12:3456::1]',
    '[fec0::1]',
    '[ff02::1]',
    '[100::1]',
    '[2001:db8::1]',
    '[5f00::1]',
    '[4000::1]',
    '[3fff::1]',
  ]
  for (const host of inside)
    await t.rejects(guard.check(hostOf(`http://${host}/`)), AddressRefused, host)
  for (const host of ['8.8.8.8', '1.1.1.1', '[2606:4700::1111]', '[::ffff:8.8.8.8]', '134744072'])
    await t.resolves(guard.check(hostOf(`http://${host}/`)), host)
})

t.test('any spelling of any private IPv4 address is refused', async (t) => {
  const guard = createGuard([], nobody)
  const address = fc
    .oneof(fc.constant(127), fc.constant(10), fc.constant(0))
    .chain((first) => fc.tuple(fc.constant(first), fc.nat(255), fc.nat(255), fc.nat(255)))
  const spelled = fc.tuple(address, fc.nat(5)).map(([[a, b, c, d], form]) => {
    const whole = ((a * 256 + b) * 256 + c) * 256 + d
    return [
      `${a}.${b}.${c}.${d}`,
      String(whole),
      `0x${whole.toString(16)}`,
      `0${whole.toString(8)}`,
      `${a}.${b}.${c * 256 + d}`,
      `[::ffff:${a}.${b}.${c}.${d}]`,
    ][form] as string
  })
  await fc.assert(
    fc.asyncProperty(spelled, async (host) =>
      guard.check(hostOf(`http://${host}/`)).then(
        () => false,
        (error) => error instanceof AddressRefused,
      ),
    ),
    { numRuns: 500 },
  )
  t.pass()
})

t.test('a name is checked with all of its addresses', async (t) => {
  const names: Record<string, string[]> = {
    good: ['8.8.8.8', '2606:4700::1111'],
    mixed: ['8.8.8.8', '127.0.0.1'],
    inner: ['::ffff:10.0.0.1'],
    none: [],
    odd: ['not an address'],
  }
  const guard = createGuard([], async (name) => names[name] ?? [])
  t.strictSame(await guard.check('good'), [
    { address: '8.8.8.8', family: 4 },
    { address: '2606:4700::1111', family: 6 },
  ])
  for (const name of ['mixed', 'inner', 'none', 'odd'])
    await t.rejects(guard.check(name), AddressRefused, name)
})

t.test('the operator can allow networks', async (t) => {
  const guard = createGuard(['10.0.0.0/8', '::1', '127.0.0.1'], nobody)
  for (const host of ['10.9.8.7', '[::1]', '127.0.0.1', '[::ffff:10.0.0.1]'])
    await t.resolves(guard.check(hostOf(`http://${host}/`)), host)
  for (const host of ['127.0.0.2', '192.168.0.1', '[::2]'])
    await t.rejects(guard.check(hostOf(`http://${host}/`)), AddressRefused, host)
  t.strictSame(['10.0.0.0/8', 'fd00::/8', '127.0.0.1', '::1'].map(wrongNetwork), [
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  for (const text of ['10.0.0.0/33', 'localhost', '*', '10.0.0', '10/8'])
    t.match(wrongNetwork(text), /networks/, text)
})

const sending = (url: string, more: Partial<Sending> = {}): Sending => ({
  url,
  schemes: ['http:', 'https:'],
  headers: {},
  body: '{}',
  timeout: 5000,
  most: 1000,
  signal: new AbortController().signal,
  ...more,
})
async function serving(t: Test, listener: RequestListener): Promise<number> {
  const server = createServer(listener)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

t.test('a request connects to the address that was checked', async (t) => {
  let asked = 0
  const port = await serving(t, (req, res) => res.end(JSON.stringify({ host: req.headers.host })))
  // The name resolves to this machine when it is checked, and to another address afterwards.
  const post = createPost(
    createGuard(['127.0.0.1'], async () => (asked++ === 0 ? ['127.0.0.1'] : ['127.0.0.9'])),
  )
  const answer = await post(sending(`http://rebind.example:${port}/x`))
  t.match(answer, { status: 200 })
  t.equal(JSON.parse(String('body' in answer && answer.body)).host, `rebind.example:${port}`)
  t.equal(asked, 1)
  const closed = createPost(createGuard([], async () => ['127.0.0.1']))
  t.match(await closed(sending(`http://rebind.example:${port}/`)), { failed: 'refused' })
  t.match(await closed(sending(`http://127.0.0.1:${port}/`)), { failed: 'refused' })
  t.match(await post(sending(`http://127.0.0.1:${port}/`, { schemes: ['https:'] })), {
    failed: 'refused',
    message: /https/,
  })
  t.match(await post(sending('file:///etc/passwd')), { failed: 'refused' })
  t.match(await post(sending('nonsense')), { failed: 'refused' })
})

t.test(
  'an exchange is limited in time and size, follows no redirects, and can be aborted',
  async (t) => {
    const post = createPost(createGuard(['127.0.0.1']))
    let followed = 0
    const port = await serving(t, (req, res) => {
      if (req.url === '/big') res.end('x'.repeat(1001))
      else if (req.url === '/fits') res.end('x'.repeat(1000))
      else if (req.url === '/redirect') res.writeHead(307, { location: '/target' }).end()
      else if (req.url === '/target') {
        followed++
        res.end()
      } else if (req.url === '/cut') {
        res.writeHead(200, { 'content-length': '100' })
        res.write('half')
        setImmediate(() => res.destroy())
      } else if (req.url === '/drip') res.write('x')
    })
    const to = (path: string, more: Partial<Sending> = {}) =>
      post(sending(`http://127.0.0.1:${port}${path}`, more))
    t.match(await to('/fits'), { status: 200 })
    t.match(await to('/big'), { failed: 'too_large' })
    t.match(await to('/redirect'), { status: 307 })
    t.equal(followed, 0)
    t.match(await to('/cut'), { failed: 'network' })
    t.match(await to('/silent', { timeout: 50 }), { failed: 'timeout' })
    t.match(
      await to('/drip', { timeout: 50 }),
      { failed: 'timeout' },
      'the time is that of the whole exchange',
    )
    const abort = new AbortController()
    const stopped = to('/silent', { signal: abort.signal })
    abort.abort()
    t.match(await stopped, { failed: 'stopped' })
    t.match(await post(sending('http://127.0.0.1:9/')), { failed: 'network' })
    const slow = createPost(createGuard([], () => new Promise(() => {})))
    t.match(
      await slow(sending('http://slow.example/', { timeout: 50 })),
      { failed: 'timeout' },
      'also while a name is looked up',
    )
  },
)

t.test('options allow plain HTTP to permitted addresses, and truncated answers', async (t) => {
  const port = await serving(t, (_, res) => res.end('x'.repeat(5000)))
  const names: Record<string, string[]> = {
    inside: ['127.0.0.1'],
    outside: ['8.8.8.8'],
    both: ['127.0.0.1', '8.8.8.8'],
  }
  const guard = createGuard(
    ['127.0.0.1'],
    async (name) => names[name] ?? Promise.reject(new Error('unknown')),
  )
  const post = createPost(guard)
  const to = (host: string) =>
    post(sending(`http://${host}:${port}/`, { schemes: ['https:'], plain: true, cut: true }))
  const answer = await to('inside')
  t.match(answer, { status: 200 })
  t.equal('body' in answer && answer.body.length, 1000)
  for (const host of ['outside', 'both'])
    t.match(await to(host), { failed: 'refused', message: /https/ }, host)
  const vet = createVet(guard)
  t.strictSame(
    await Promise.all(
      ['https://outside/', 'https://inside/', 'http://inside/', 'https://unknown/'].map(vet),
    ),
    [undefined, undefined, undefined, undefined],
  )
  for (const url of ['http://outside/', 'http://both/', 'http://unknown/'])
    t.match(await vet(url), /must begin with https/, url)
  t.match(await vet('https://10.0.0.1/'), /may not be called/)
})

t.test('the signature matches the published example', async (t) => {
  const key = Uint8Array.from({ length: 32 }, (_, i) => i)
  const body = '{"type":"ping","data":{"webhook_id":"wbh_0a1b2c3d4e5f6g7h"}}'
  const headers = signed({
    brand: 'Service',
    key,
    delivery_id: 'whd_7h6g5f4e3d2c1b0a',
    at: 1_767_225_600_999,
    body,
    secret_ref: 'service/webhook/wbh_0a1b2c3d4e5f6g7h',
    secret_version: 1,
  })
  t.strictSame(headers, {
    'X-Service-Signature-Version': 'v1',
    'X-Service-Signature':
      'sha256=212d8c0284210b68c8c1515de38286189f47758289ed7c6736aceb93b57fcec6',
    'X-Service-Timestamp': '1767225600',
    'X-Service-Delivery-Id': 'whd_7h6g5f4e3d2c1b0a',
    'X-Service-Secret-Ref': 'service/webhook/wbh_0a1b2c3d4e5f6g7h',
    'X-Service-Secret-Version': '1',
    'Idempotency-Key': 'whd_7h6g5f4e3d2c1b0a',
  })
})

t.test('a sealed secret opens only here, unchanged, and for its own context', async (t) => {
  let count = 0
  const random = { bytes: (length: number) => new Uint8Array(length).fill(++count) }
  const locks = createSecretBox(Buffer.alloc(32, 1), random)
  const secret = Buffer.from('0123456789abcdef')
  const locked = locks.lock(secret, 'prj_1')
  t.notOk(locked.includes('0123'))
  t.not(locks.lock(secret, 'prj_1'), locked)
  t.strictSame(Buffer.from(locks.unlock(locked, 'prj_1') ?? []), secret)
  t.equal(locks.unlock(locked, 'prj_2'), undefined)
  t.equal(createSecretBox(Buffer.alloc(32, 2), random).unlock(locked, 'prj_1'), undefined)
  for (const broken of [
    '',
    'v1.',
    'v1.AAAA',
    `${locked}AAAA`,
    locked.slice(0, -4),
    locked.replace('v1.', 'v2.'),
  ])
    t.equal(locks.unlock(broken, 'prj_1'), undefined, broken)
})
