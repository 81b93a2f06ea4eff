/**
 * Corrupts valid JSON, at any location of the value or of its text. The results are texts or bytes,
 * because many of them are not JSON.
 */
import fc from 'fast-check'

/** JSON texts that are rarely or never valid at their location. */
const odd: readonly string[] = [
  'null',
  'true',
  '0',
  '-1',
  '1.5',
  '-0',
  '1e400',
  '-1e999',
  '9007199254740993',
  '1e21',
  '5e-324',
  '""',
  '" "',
  '"x"',
  '[]',
  '{}',
  '[null]',
  '[[]]',
  '{"":null}',
  JSON.stringify('x'.repeat(5000)),
  JSON.stringify('é'.repeat(1025)),
  '"\\ud800"',
  '"\\udfff\\ud800"',
  '"\\u0000"',
  '"a\\u0000b"',
  '"\\u202e\\ufeff"',
  '"__proto__"',
  '"constructor"',
  '"toString"',
  '{"__proto__":{"admin":true}}',
  '{"constructor":{"prototype":{"admin":true}}}',
  '{"prototype":{"x":1},"hasOwnProperty":1,"toString":null,"valueOf":{}}',
  '{"then":1,"refused":"internal"}',
  '{"status_code":500}',
  '"../../etc/passwd"',
  '"%00%2e%2e%2f"',
  '"\' OR 1=1; DROP TABLE runs; --"',
  '"${{ input.__proto__.constructor }}"',
  '"${{ "',
  '"${{ [1].map(x, x) }}"',
  '"$(id)"',
  '"*"',
  '">"',
  '"a.b.*"',
  '"\\r\\nX-Injected: 1"',
  '"2030-02-30T00:00:00Z"',
  '"9999999999999h"',
  `[${'0,'.repeat(5000)}0]`,
  `{${Array.from({ length: 2000 }, (_, n) => `"k${n}":${n}`).join()}}`,
  `${'['.repeat(100)}${']'.repeat(100)}`,
  `${'['.repeat(10_000)}${']'.repeat(10_000)}`,
  `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`,
]
const names = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'x',
  '',
  'id',
  'project',
  'status_code',
  'refused',
  'x'.repeat(3000),
  'é\u0000',
]

type Path = readonly (string | number)[]
function placesIn(value: unknown, at: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [at]
  return [
    at,
    ...Object.entries(value).flatMap(([key, part]) =>
      placesIn(part, [...at, Array.isArray(value) ? Number(key) : key]),
    ),
  ]
}

const HOLE = '\u0001hole\u0001'
function put(value: unknown, [first, ...rest]: Path, hole: unknown): unknown {
  if (first === undefined) return hole
  if (Array.isArray(value))
    return value.map((item, index) => (index === first ? put(item, rest, hole) : item))
  return Object.fromEntries(
    Object.entries(value as object).map(([key, part]) => [
      key,
      key === first ? put(part, rest, hole) : part,
    ]),
  )
}
/** Returns the JSON of a value in which `raw` replaces the part at `path`. */
const textWith = (value: unknown, path: Path, raw: string): string =>
  JSON.stringify(put(value, path, HOLE)).replace(JSON.stringify(HOLE), () => raw)
/**
 * Returns the JSON of a value with an additional field at the beginning of the object at `path`. If
 * the object has a field of that name, the name is repeated. A value that is not an object is
 * replaced by `raw`.
 */
function textWithMember(value: unknown, path: Path, name: string, raw: string): string {
  const inner = path.reduce<unknown>(
    (part, key) => (part as Record<string | number, unknown>)[key],
    value,
  )
  if (typeof inner !== 'object' || inner === null || Array.isArray(inner))
    return textWith(value, path, raw)
  const rest = JSON.stringify(inner).slice(1)
  return textWith(value, path, `{${JSON.stringify(name)}:${raw}${rest === '}' ? '' : ','}${rest}`)
}
function textWithout(value: unknown, path: Path): string {
  const text = textWith(value, path, '\u0002')
  return text.replace(/(?:"(?:[^"\\]|\\.)*":)?\u0002,?/, '').replace(/,([}\]])/, '$1')
}

/**
 * Generates corrupted forms of a value, and sometimes its valid JSON. Invalid UTF-8 is generated as
 * bytes.
 */
export function mutated(values: fc.Arbitrary<unknown>): fc.Arbitrary<string | Uint8Array> {
  return values.chain((value) => {
    const text = JSON.stringify(value) ?? 'null'
    const place = fc.constantFrom(...placesIn(value))
    const raw = fc.constantFrom(...odd)
    return fc.oneof(
      { weight: 2, arbitrary: fc.constant(text) },
      {
        weight: 6,
        arbitrary: fc.tuple(place, raw).map(([path, bad]) => textWith(value, path, bad)),
      },
      {
        weight: 2,
        arbitrary: fc
          .tuple(place, fc.constantFrom(...names), raw)
          .map(([path, name, bad]) => textWithMember(value, path, name, bad)),
      },
      { weight: 2, arbitrary: place.map((path) => textWithout(value, path)) },
      { weight: 1, arbitrary: fc.nat(text.length).map((length) => text.slice(0, length)) },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          '',
          ' ',
          'null',
          '[]',
          '"',
          '{',
          '{"a"',
          'NaN',
          '\ufeff{}',
          `${text}${text}`,
          `${text} x`,
          `/**/${text}`,
          `${text.slice(0, -1)},}`,
          `${' '.repeat(20_000)}${text}`,
          '['.repeat(10_000),
        ),
      },
      {
        weight: 1,
        arbitrary: fc
          .tuple(
            fc.nat(text.length),
            fc.constantFrom(
              [0xff],
              [0xc0, 0x80],
              [0xed, 0xa0, 0x80],
              [0xf5, 0x80, 0x80, 0x80],
              [0],
            ),
          )
          .map(([at, bytes]) =>
            Buffer.concat([
              Buffer.from(text.slice(0, at)),
              Buffer.from(bytes),
              Buffer.from(text.slice(at)),
            ]),
          ),
      },
    )
  })
}
