/** Long lists of the console: their pages, their items as text, and the lines that are rendered. */
import fc from 'fast-check'
import t from 'tap'
import { Growing } from '../../console/api/growing.ts'
import { PackedItems, packingOf } from '../../console/api/packed.ts'
import { addPage, type Known, mergeFirst, nothingKnown } from '../../console/api/pages.ts'
import { RenderBudget } from '../../console/design/virtual/budget.ts'
import { type Slots, shownSlots, slotsOf } from '../../console/design/virtual/slots.ts'
import { visibleRange } from '../../console/design/virtual/visible-range.ts'

const idItems = (...ids: number[]) => ids.map((id) => ({ id }))
type Ids = Known<{ id: number }>
const page = (...ids: number[]) => ({ items: idItems(...ids), next_cursor: String(ids.at(-1)) })
const idsOf = ({ items, next }: Ids) => [items.all.map(({ id }) => id), next]

t.test('a list keeps its later pages when its first page changes', async (t) => {
  const first = mergeFirst(nothingKnown as Ids, page(5, 4))
  t.strictSame(idsOf(first), [[5, 4], '4'])
  const both = addPage(first, page(3, 2))
  t.strictSame(idsOf(both), [[5, 4, 3, 2], '2'])
  t.strictSame(idsOf(mergeFirst(both, page(6, 5))), [[6, 5, 4, 3, 2], '2'])
  t.strictSame(
    idsOf(mergeFirst(both, page(9, 8))),
    [[9, 8], '8'],
    'items that may have a gap before them are dropped',
  )
  t.strictSame(idsOf(mergeFirst(both, { items: idItems(3) })), [[3], undefined])
})

t.test('a list that grows at its beginning is cut at the end of a page', async (t) => {
  let known = mergeFirst(nothingKnown as Ids, page(9, 8, 7))
  known = mergeFirst(known, page(10, 9, 8))
  t.strictSame(idsOf(known), [[10, 9, 8], '8'], 'only the first page was asked for')
  known = addPage(known, page(7, 6, 5))
  for (let id = 11; id <= 100; id++) {
    known = mergeFirst(known, page(id, id - 1, id - 2))
    t.ok(known.items.length >= 6 && known.items.length < 9)
    t.equal(known.next, String(known.items.at(-1)?.id))
  }
  const loading = { ...known, wanted: 3, loading: true }
  t.ok(mergeFirst(loading, page(101, 100, 99)).items.length > 3, 'the next page will follow')
  t.equal(mergeFirst({ ...loading, loading: false }, page(101, 100, 99)).items.length, 3)
})

t.test('an item that two pages have is in the list once', async (t) => {
  const first = mergeFirst(nothingKnown as Ids, page(5, 4))
  const second = addPage(first, page(4, 3))
  t.strictSame(idsOf(second), [[5, 4, 3], '3'])
  t.strictSame(idsOf(addPage(second, page(5, 2))), [[5, 4, 3, 2], '2'])
  t.strictSame(idsOf(addPage(first, page(2, 1))), [[5, 4, 2, 1], '1'], 'an earlier list is intact')
})

t.test('a list that grows shares its items with the lists before it', async (t) => {
  const two = Growing.of(idItems(1, 2))
  const four = two.append(idItems(2, 3, 4))
  t.strictSame([four.all, four.length], [idItems(1, 2, 3, 4), 4], 'no item is listed twice')
  t.strictSame([two.all, two.at(-1), two.at(2)], [idItems(1, 2), { id: 2 }, undefined])
  t.strictSame(
    [1, 4, 9, undefined].map((id) => four.indexOf(id)),
    [0, 3, -1, -1],
  )
  t.equal(two.indexOf(4), -1, 'a shorter list has no item of a longer one')
  t.strictSame([four.slice(1, 3), four.slice(-1)], [idItems(2, 3), idItems(4)])
  t.strictSame([two.slice(1), two.slice(0, 9)], [idItems(2), idItems(1, 2)])
  const other = two.append(idItems(4, 5))
  t.strictSame([other.all, four.all], [idItems(1, 2, 4, 5), idItems(1, 2, 3, 4)])
  t.strictSame([other.indexOf(4), four.indexOf(4)], [2, 3])
})

interface Person {
  readonly id: string
  readonly name: string | undefined
}
const people = packingOf<Person>(['id', 'name'])
const personOf = (index: number): Person => ({
  id: `p${index}`,
  name: index % 3 === 0 ? undefined : `Name \u{1f600} "${index}"`,
})

t.test('items that are kept as text are read as they were', (t) => {
  const all = Array.from({ length: 5000 }, (_, index) => personOf(index))
  const packed = new PackedItems(people)
  for (const person of all) packed.push(person)
  t.equal(packed.length, 5000)
  t.strictSame(packed.slice(0, 9999), all)
  t.strictSame(packed.slice(127, 129), all.slice(127, 129))
  fc.assert(
    fc.property(fc.nat(5200), (index) => {
      const item = packed.at(index)
      t.strictSame(item, all[index])
      return packed.at(index) === item
    }),
  )
  t.end()
})

t.test('a list whose items are kept as text equals one whose items are objects', (t) => {
  const steps = fc.array(
    fc.record({ by: fc.nat(300), again: fc.nat(20), earlier: fc.boolean(), first: fc.boolean() }),
    { maxLength: 6 },
  )
  let packed = 0
  const counted: typeof people = {
    pack: (person) => {
      packed++
      return people.pack(person)
    },
    unpack: people.unpack,
  }
  fc.assert(
    fc.property(steps, (pages) => {
      type People = Known<Person>
      let lists: readonly [People, People] = [
        nothingKnown,
        { ...nothingKnown, items: Growing.of<Person>([], counted) },
      ] as readonly [People, People]
      let from = 0
      let earlier = lists
      for (const { by, again, earlier: goesBack, first } of pages) {
        if (goesBack) lists = earlier
        else earlier = lists
        const start = first ? 0 : Math.max(0, from - again)
        const items = Array.from({ length: by + again }, (_, index) => personOf(start + index))
        from = Math.max(from, start + by + again)
        const add = first ? mergeFirst : addPage
        packed = 0
        const [a, b] = lists.map((known) =>
          add<Person>(known, { items, next_cursor: items.at(-1)?.id ?? '' }),
        )
        lists = [a as People, b as People]
        const [{ items: objects, ...one }, { items: texts, ...other }] = lists
        t.strictSame(texts.all, objects.all)
        t.strictSame(other, one)
        t.equal(texts.indexOf(`p${from - 1}`), objects.indexOf(`p${from - 1}`))
        // When a first page replaces the list, and the result has at least 128 items (one block),
        // the items must be packed anew.
        if (first && texts.length >= 128 && packed === 0) return false
      }
      return true
    }),
    { numRuns: 60 },
  )
  t.end()
})

t.test('an index of many ids finds each', async (t) => {
  const all = Array.from({ length: 10_000 }, (_, id) => ({ id: `i${id}` }))
  const list = Growing.of(all.slice(0, 5000)).append(all.slice(4000))
  t.equal(list.length, 10_000)
  t.strictSame(
    [0, 4095, 4096, 9999].map((at) => list.indexOf(`i${at}`)),
    [0, 4095, 4096, 9999],
  )
  t.equal(list.indexOf('i10000'), -1)
})

t.test('only visible lines of a long list are rendered', async (t) => {
  t.strictSame(visibleRange(0, 100, 10, 5), { first: 0, end: 5 })
  t.strictSame(visibleRange(10_000, 100, 10, 100_000), { first: 992, end: 1019 })
  t.strictSame(visibleRange(10_000, 100, 10, 3), { first: 0, end: 3 })
})

t.test('a line keeps its element while it is rendered, and no two lines share one', (t) => {
  const keys = fc.uniqueArray(fc.nat(30).map(String), { maxLength: 12 })
  fc.assert(
    fc.property(fc.array(keys, { minLength: 1, maxLength: 8 }), (ranges) => {
      let before: Slots = new Map()
      for (const range of ranges) {
        const slots = slotsOf(range, before)
        const numbers = new Set(slots.values())
        if ([...slots.keys()].join() !== range.join() || numbers.size !== range.length) return false
        for (const [key, slot] of before)
          if (slots.has(key) && slots.get(key) !== slot) return false
        // New elements are created only if all existing ones are in use.
        const created = [...numbers].filter((slot) => ![...before.values()].includes(slot))
        if (created.length !== Math.max(0, range.length - before.size)) return false
        before = slots
      }
      return true
    }),
  )
  t.strictSame(
    [
      ...slotsOf(
        ['c', 'd'],
        new Map([
          ['a', 1],
          ['b', 0],
        ]),
      ),
    ],
    [
      ['c', 1],
      ['d', 0],
    ],
    'other lines use the elements in their order',
  )
  t.end()
})

t.test('all ranges of a long list have the same length', (t) => {
  fc.assert(
    fc.property(fc.nat(3_000_000), fc.integer({ min: 1, max: 900 }), (scrolled, height) => {
      const { first, end } = visibleRange(
        Math.min(scrolled, 1_000_000 - height),
        height,
        10,
        100_000,
      )
      const { end: length } = visibleRange(0, height, 10, 100_000)
      const top = Math.min(scrolled, 1_000_000 - height)
      return end - first === length && first * 10 <= top && end * 10 >= top + height
    }),
  )
  t.end()
})

t.test('a frame without time postpones lines, of which later frames show each once', (t) => {
  const frames = fc.array(fc.record({ first: fc.nat(40), cost: fc.nat(4), isLong: fc.boolean() }), {
    minLength: 1,
    maxLength: 12,
  })
  const budget = new RenderBudget()
  fc.assert(
    fc.property(frames, (all) => {
      /** The item of each slot in the document. */
      const shown = new Map<number, string>()
      let before: Slots = new Map()
      const render = (
        first: number,
        cost: number,
        needed: { first: number; end: number },
      ): void => {
        const keys = Array.from({ length: 10 }, (_, at) => String(first + at))
        const wanted = slotsOf(keys, before)
        let now = 0
        budget.begin(now, needed)
        for (const [index, key] of keys.entries()) {
          const slot = wanted.get(key) as number
          const old = shown.get(slot)
          if (old === key) continue
          if (old !== undefined) {
            const change = { shown: old, next: key, index: first + index }
            if (!budget.allows(change, now)) continue
          }
          now += cost
          shown.set(slot, key)
        }
        before = shownSlots(wanted, budget.postponed)
        t.equal(new Set(shown.values()).size, 10, 'no item is shown twice')
        t.strictSame(new Set(before.keys()), new Set(shown.values()))
        for (const [key, slot] of before) t.equal(shown.get(slot), key)
      }
      let last = 0
      for (const { first, cost, isLong } of all) {
        last = first
        render(
          first,
          cost,
          isLong ? { first: first + 3, end: first + 7 } : { first, end: first + 10 },
        )
      }
      let rounds = 0
      do render(last, 4, { first: last, end: last + 10 })
      while (budget.incomplete && rounds++ < 10)
      return rounds <= 10 && [...shown.values()].every((key) => Number(key) - last < 10)
    }),
  )
  t.end()
})
