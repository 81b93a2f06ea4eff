/** Sealed cursors of lists: a cursor is valid only unchanged, and only for the same list. */
import fc from 'fast-check'
import t from 'tap'
import { type Binding, openCursor, sealCursor } from '../../../gateway/http/cursor.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { seal } from '../support/given.ts'

const world = { seal }
const text = fc.string({ maxLength: 12 })
const filters = fc.dictionary(
  fc.constantFrom('status', 'queue', 'tag', 'external_id'),
  fc.oneof(text, fc.boolean(), fc.array(text, { maxLength: 3 })),
)
const binding: fc.Arbitrary<Binding> = fc.record({ project: text, route: text, filters })
const position = fc.oneof(fc.integer(), text, fc.tuple(text, fc.integer()))
const meant = ({ project, route, filters }: Binding) =>
  JSON.stringify([project, route, Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1))])

t.test('a cursor restores its position in the same list', async () => {
  void fc.assert(
    fc.property(binding, position, (b, p) => {
      const opened = openCursor(world, b, sealCursor(world, b, p))
      return !isRefusal(opened) && JSON.stringify(opened.position) === JSON.stringify(p)
    }),
  )
})
t.test('the order of filters, the limit and the cursor itself do not matter', async (t) => {
  const cursor = sealCursor(
    world,
    { project: 'p', route: 'r', filters: { a: '1', b: ['x'], none: undefined, limit: 2 } },
    [1, 'id'],
  )
  t.match(cursor, /^[A-Za-z0-9_-]+$/)
  t.same(
    openCursor(
      world,
      { project: 'p', route: 'r', filters: { cursor, b: ['x'], a: '1', limit: 5 } },
      cursor,
    ),
    { position: [1, 'id'] },
  )
})
t.test('a cursor is refused by any other list', async () => {
  void fc.assert(
    fc.property(
      binding,
      binding,
      position,
      (a, b, p) =>
        meant(a) === meant(b) || isRefusal(openCursor(world, b, sealCursor(world, a, p))),
    ),
  )
})
t.test('a changed cursor is refused', async (t) => {
  const b: Binding = { project: 'p', route: 'r', filters: { status: ['failed'] } }
  void fc.assert(
    fc.property(
      position,
      fc.nat(),
      fc.constantFrom(...'ABCxyz019-_=+/ .%'),
      fc.constantFrom('replace', 'insert', 'remove', 'cut'),
      (p, at, char, how) => {
        const cursor = sealCursor(world, b, p)
        const i = at % cursor.length
        const changed =
          how === 'cut'
            ? cursor.slice(0, i)
            : cursor.slice(0, i) +
              (how === 'remove' ? '' : char) +
              cursor.slice(how === 'insert' ? i : i + 1)
        return changed === cursor || isRefusal(openCursor(world, b, changed))
      },
    ),
    { numRuns: 2000 },
  )
  void fc.assert(fc.property(fc.string(), (any) => isRefusal(openCursor(world, b, any))))
  t.match(openCursor(world, b, 'x'), {
    refused: 'bad_request',
    details: { fields: [{ field: 'cursor' }] },
  })
})
t.test('a cursor of another installation is refused', async (t) => {
  const b: Binding = { project: 'p', route: 'r', filters: {} }
  t.match(openCursor({ seal: (x) => seal(`other ${x}`) }, b, sealCursor(world, b, 1)), {
    refused: 'bad_request',
  })
})
