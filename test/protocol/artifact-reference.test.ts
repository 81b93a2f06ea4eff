/** References to artifacts in the results of jobs: their form, and how they are found. */
import fc from 'fast-check'
import t from 'tap'
import { artifactReferences } from '../../protocol/artifacts/reference.ts'

const reference = (id = 'art_1', more: object = {}) => ({
  type: 'artifact',
  id,
  name: 'reports/may.pdf',
  mime: 'application/pdf',
  size: 7,
  sha256: 'ab'.repeat(32),
  ...more,
})

t.test('references are found at any place, once per artifact', async (t) => {
  const [first, second] = [reference('art_1'), reference('art_2')]
  t.same(artifactReferences(first), [first])
  const nested = { n: 1, files: [second, { deep: { first } }, second], none: null, text: 'art_3' }
  t.same(artifactReferences(nested), [second, first])
  const { name: _, ...nameless } = first
  t.same(artifactReferences([nameless]), [nameless])
})

t.test('values that only resemble a reference are data', async (t) => {
  for (const wrong of [
    reference('art_../../x'),
    reference('ses_1'),
    reference(''),
    reference('art_1', { type: 'file' }),
    reference('art_1', { sha256: 'AB'.repeat(32) }),
    reference('art_1', { size: -1 }),
    reference('art_1', { size: '7' }),
    reference('art_1', { mime: null }),
    reference('art_1', { name: 7 }),
    { type: 'artifact', id: 'art_1' },
    JSON.stringify(reference()),
    null,
    7,
  ])
    t.same(artifactReferences(wrong), [], JSON.stringify(wrong))
})

t.test('the search is bounded in number and depth', async (t) => {
  const many = Array.from({ length: 60 }, (_, n) => reference(`art_${n}`))
  t.equal(artifactReferences(many).length, 50)
  let deep: unknown = reference()
  for (let level = 0; level < 100_000; level++) deep = [deep]
  t.same(artifactReferences(deep), [])
})

t.test('no value makes the search fail, and what it finds is in the value', async () => {
  const ids = fc.stringMatching(/^art_[A-Z0-9]{1,5}$/).map((id) => reference(id))
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small' },
      fc.jsonValue(),
      ids,
      fc.array(tie('tree')),
      fc.dictionary(fc.string(), tie('tree')),
    ),
  }))
  fc.assert(
    fc.property(tree, (value) => {
      const text = JSON.stringify(value)
      for (const { id } of artifactReferences(value))
        if (!text.includes(`"id":"${id}"`)) throw new Error(`${id} is not in ${text}`)
    }),
  )
})
