/**
 * URLs with sealed query values: the URL that readers see, the URL that is stored, and the URL to
 * which a request is sent.
 */
import fc from 'fast-check'
import t from 'tap'
import {
  maskUrl,
  openUrl,
  partUrl,
  queryFault,
  resolveMasks,
  type SealedUrl,
  type SentParts,
  sameParts,
} from '../../protocol/masked-url.ts'

const sealing = (text: string) => ({ sealed: `sealed:${text}`, digest: `digest:${text}` })
const opening = (sealed: string) => sealed.slice('sealed:'.length)
/** Returns a URL as a gateway sends it to an actor. */
const sent = (text: string): { url: string; parts: SentParts } => {
  const { url, values } = partUrl(text)
  return { url, parts: values.map((value) => (value === null ? null : sealing(value))) }
}
const stored = (text: string, before?: SealedUrl): SealedUrl => {
  const { url, parts } = sent(text)
  const kept = resolveMasks(url, parts, before)
  if ('fault' in kept) throw new Error(kept.fault)
  return kept
}
const fault = (text: string, before?: SealedUrl): string | undefined => {
  const { url, parts } = sent(text)
  const kept = resolveMasks(url, parts, before)
  return 'fault' in kept ? kept.fault : undefined
}

t.test('every value of a query is masked, and nothing else', async (t) => {
  for (const [text, masked] of [
    ['https://example.org', 'https://example.org'],
    ['https://example.org/a?token=t0p', 'https://example.org/a?token=***'],
    ['https://example.org/a?a=1&b=&c=x=y&d', 'https://example.org/a?a=***&b=&c=***&***'],
    ['https://example.org/a?t0p', 'https://example.org/a?***'],
    ['https://example.org/?a=?b', 'https://example.org/?a=***'],
    ['https://example.org/?', 'https://example.org/?'],
    ['https://example.org/?&&', 'https://example.org/?&&'],
  ] as const) {
    t.equal(maskUrl(text), masked)
    t.equal(maskUrl(masked), masked, 'a masked URL stays')
  }
})

const piece = fc.string({ unit: fc.constantFrom(...'abc=?/%20+.~'), maxLength: 8 })
const query = fc.array(
  fc.oneof(
    fc.tuple(piece, piece).map(([name, value]) => `${name.replaceAll('=', '')}=${value}`),
    piece,
  ),
  { minLength: 1, maxLength: 6 },
)
const address = fc.constantFrom('https://example.org', 'http://a.b:8/c', 'https://x.y/z/')

t.test(
  'a request is sent to exactly the URL that the client sent',
  async () =>
    void fc.assert(
      fc.property(address, query, (at, parameters) => {
        const text = `${at}?${parameters.join('&')}`
        const kept = stored(text)
        return (
          openUrl(kept, opening) === text &&
          kept.url === maskUrl(text) &&
          openUrl({ url: text }, opening) === text
        )
      }),
    ),
)

t.test(
  'a mask keeps the stored value, in any order and with added parameters',
  async () =>
    void fc.assert(
      fc.property(
        address,
        fc.uniqueArray(fc.constantFrom(...'abcdefgh'), { minLength: 1 }),
        fc.func(fc.string({ unit: fc.constantFrom(...'xyz1'), minLength: 1 })),
        fc.infiniteStream(fc.nat(99)),
        (at, names, textOf, chance) => {
          const text = `${at}?${names.map((name) => `${name}=${textOf(name)}`).join('&')}`
          const before = stored(text)
          const kept = stored(before.url, before)
          if (!sameParts(before, kept) || kept.url !== before.url) return false
          const next = names
            .filter(() => (chance.next().value ?? 0) < 70)
            .sort(() => (chance.next().value ?? 0) - 50)
            .map((name) => ({ name, renewed: (chance.next().value ?? 0) < 30 }))
          const written = (mask: boolean) =>
            `${at}?new=1${next
              .map(({ name, renewed }) =>
                renewed ? `&${name}=n` : `&${name}=${mask ? '***' : textOf(name)}`,
              )
              .join('')}`
          return openUrl(stored(written(true), before), opening) === written(false)
        },
      ),
    ),
)

t.test('a mask without a stored value is refused', async (t) => {
  const before = stored('https://example.org/hook?token=t0p&token=second')
  t.equal(fault('https://example.org/hook?token=***', before), undefined)
  t.equal(
    openUrl(stored('https://example.org/hook?token=***&token=***', before), opening),
    'https://example.org/hook?token=t0p&token=second',
    'a repeated name',
  )
  for (const [text, message] of [
    ['https://evil.example/hook?token=***', /for a new address/],
    ['https://example.org/hook/?token=***', /for a new address/],
    ['http://example.org/hook?token=***', /for a new address/],
    ['https://example.org/hook?key=***', /with no value/],
    ['https://example.org/hook?token=***&token=***&token=***', /with no value/],
    ['https://example.org/hook?***', /with no value/],
  ] as const)
    t.match(fault(text, before), message, text)
  t.match(fault('https://example.org/hook?token=***', undefined), /for a new address/)
})

t.test('a URL that an earlier release stored in clear text', async (t) => {
  const before: SealedUrl = { url: 'https://example.org/?a=1&b=2' }
  t.equal(openUrl(before, opening), before.url)
  t.equal(resolveMasks('https://example.org/?a=***&b=***', [null, null], before), before)
  t.match(fault('https://example.org/?a=***', before), /with no value/)
  t.equal(openUrl(stored('https://example.org/?a=1&b=2', before), opening), before.url)
  t.strictSame(resolveMasks(before.url, undefined, undefined), before, 'a gateway of that release')
  t.equal(openUrl({ url: 'https://example.org/?a=***' }, opening), undefined, 'nothing to open')
})

t.test('a value that cannot be decrypted is never sent as something else', async (t) => {
  const kept = stored('https://example.org/?a=1&b=2')
  const half = (sealed: string) => (sealed.endsWith('1') ? '1' : undefined)
  t.equal(openUrl(kept, half), undefined)
})

t.test('the number of query parameters is limited', async (t) => {
  const of = (count: number) =>
    `https://example.org/?${Array.from({ length: count }, () => 'a=1').join('&')}`
  t.equal(queryFault(of(32)), undefined)
  t.match(queryFault(of(33)), /at most 32/)
})
