import { randomBytes } from 'node:crypto'
import t from 'tap'
import { hexOf, uniqueTexts } from '../../../gateway/http/hex.ts'

t.test('bytes become hex digits', async (t) => {
  t.equal(hexOf(new Uint8Array([0, 1, 254, 255])), '0001feff')
  t.equal(hexOf(new Uint8Array([9, 171, 205, 9]).subarray(1, 3)), 'abcd', 'of a part of a buffer')
})

t.test('texts of several generators are unique', async (t) => {
  const generators = Array.from({ length: 20 }, () => uniqueTexts(randomBytes))
  const texts = Array.from({ length: 2000 }, (_, i) => generators[i % generators.length]?.())
  t.equal(new Set(texts).size, texts.length)
  for (const text of texts) t.match(text, /^[0-9a-f]{24}$/)
})

t.test('texts of one generator have the same beginning and a counter', async (t) => {
  let drawn = 0
  const next = uniqueTexts((bytes) => new Uint8Array(bytes).fill(++drawn))
  t.strictSame(
    [next(), next(), next()],
    [0, 1, 2].map((n) => `${'01'.repeat(8)}1000000${n}`),
  )
  t.equal(drawn, 1)
})
