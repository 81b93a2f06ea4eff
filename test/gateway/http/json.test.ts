/** The bounds on the numbers of different names and of containers in JSON of clients. */
import t from 'tap'
import { MAX_CONTAINERS, MAX_NAMES, parseJson } from '../../../gateway/http/json.ts'
import { readBody, unsafeValueFault } from '../../../gateway/http/validate.ts'
import { readFrame } from '../../../gateway/workers/frames.ts'
import { api } from '../../../protocol/api.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { explain } from '../../../protocol/rules/schema-faults/explain.ts'

/** Returns the text of an object with this many different names. */
const wide = (names: number, value = '1'): string =>
  `{${Array.from({ length: names }, (_, n) => `"name ${n}":${value}`).join()}}`
const tooMany = {
  fault: `has more than ${MAX_NAMES} different names of members`,
  tooMany: true,
}

t.test('a text with more different names than the bound is refused before it is parsed', (t) => {
  t.notOk('fault' in parseJson(wide(MAX_NAMES)), 'the bound itself is allowed')
  t.same(parseJson(wide(MAX_NAMES + 1)), tooMany)
  t.same(
    parseJson(`[${Array.from({ length: 1001 }, (_, n) => wide(50).replaceAll('name', `${n}`))}]`),
    tooMany,
    'the names of all objects are counted together',
  )
  t.same(parseJson(`${wide(MAX_NAMES + 1)} no JSON`), tooMany, 'the rest is not parsed')
  t.same(parseJson(wide(11_000), 10_000), {
    fault: 'has more than 10000 different names of members',
    tooMany: true,
  })
  t.same(
    parseJson(wide(MAX_NAMES + 1).replaceAll('name', '\\\\')),
    tooMany,
    'escapes in names do not hide names',
  )
  t.end()
})

t.test('repeated names, items and punctuation inside of strings are not counted', (t) => {
  const rows = Array.from({ length: 1000 }, (_, row) =>
    Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`column ${n}`, row * n])),
  )
  const strings = Array.from({ length: 80_000 }, (_, n) => `"${n}": \\ {"a${n}":1},`)
  const pairs = Array.from({ length: 80_000 }, (_, n) => ({ '\\"': `:${n}`, 'b\\': 'c\\' }))
  for (const value of [rows, strings, pairs, Array.from({ length: 500_000 }, (_, n) => n)])
    t.notOk('fault' in parseJson(JSON.stringify(value)))
  t.end()
})

t.test('a text with more objects and arrays than the bound is refused', (t) => {
  const list = (item: string, items: number): string => `[${`${item},`.repeat(items - 1)}${item}]`
  const tooMany = { fault: `has more than ${MAX_CONTAINERS} objects and arrays`, tooMany: true }
  for (const item of ['[]', '{}'])
    t.same(parseJson(list(item, MAX_CONTAINERS)), tooMany, `${item} in an array`)
  t.same(parseJson(`${list('[]', MAX_CONTAINERS)} no JSON`), tooMany, 'the rest is not parsed')
  t.notOk('fault' in parseJson(list('[]', MAX_CONTAINERS - 1)), 'the bound itself is allowed')
  t.notOk(
    'fault' in parseJson(list('"\\"[{"', MAX_CONTAINERS / 2 + 1)),
    'in texts, they are allowed',
  )
  t.end()
})

t.test('a body and a frame with too many names are refused', (t) => {
  const body = readBody(api['project.create'], wide(MAX_NAMES + 1), undefined)
  t.match(body, {
    refused: 'bad_request',
    details: { fields: [{ field: 'body', message: tooMany.fault }] },
  })
  t.match(readFrame(wide(2 * MAX_NAMES + 1)), {
    fault: 'bad_frame',
    message: /has more than 100000 different names/,
  })
  t.match(readFrame(`{"type":"?","more":${wide(2 * MAX_NAMES - 2)}}`), { fault: 'unknown_frame' })
  t.end()
})

t.test('faults of unknown fields are collected only up to their maximum', (t) => {
  let reads = 0
  const value = Object.defineProperties(
    {},
    Object.fromEntries(
      Array.from({ length: 1000 }, (_, n) => [
        `name${n}`,
        { enumerable: true, get: () => reads++ },
      ]),
    ),
  )
  t.equal(explain({ type: 'object', additionalProperties: false }, value).length, 50)
  t.equal(reads, 50)
  const items = Array.from({ length: 1_000_000 }, () => 'x')
  t.equal(explain({ type: 'array', items: { type: 'integer' } }, items).length, 50)
  t.ok(isRefusal(readBody(api['project.create'], wide(MAX_NAMES), undefined)))
  t.end()
})

t.test('the path of an unsafe value begins at the outermost key', (t) => {
  const huge = JSON.parse('{"a b":[1,{"c":[0,1e999]}]}')
  t.same(unsafeValueFault(huge), { field: '["a b"][1].c[1]', message: 'is too large a number' })
  t.same(unsafeValueFault(JSON.parse('[{"__proto__":1}]')), {
    field: '[0].__proto__',
    message: 'is not allowed as a name',
  })
  t.equal(unsafeValueFault({ constructor: 1, a: [{ b: null }] }), undefined)
  t.end()
})
