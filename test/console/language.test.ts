/**
 * The languages of the console: how one is selected, and how nouns form their plural. Every text of
 * the catalogue exists in every language, with the same placeholders.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import t from 'tap'
import type { Texts } from '../../console/text/messages.ts'

// The modules are loaded in English, regardless of the language of this machine.
Object.defineProperty(globalThis, 'navigator', {
  value: { languages: ['en-US'] },
  configurable: true,
})
const { languageOf, languages } = await import('../../console/text/language.ts')
const { plural } = await import('../../console/text/plural.ts')
const root = join(import.meta.dirname, '../../console')

type Parts = Readonly<Record<string, Texts>>
/**
 * Returns the English texts of all parts, from the modules that declare them, and the texts of each
 * other language. The modules are bundled, because tests may run without a loader for TypeScript.
 */
async function catalogue(folder: string): Promise<{ english: Parts; [language: string]: Parts }> {
  const lines: string[] = []
  const members: string[] = []
  const parts = new Set<string>()
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    if (!/\.tsx?$/.test(name) || name.startsWith('text/')) continue
    const source = readFileSync(join(root, name), 'utf8')
    for (const [, constant, part = ''] of source.matchAll(
      /^export const (\w+) = messages\(\s*'([^']+)'/gm,
    )) {
      if (parts.has(part)) throw new Error(`two parts have the name ${part}`)
      parts.add(part)
      lines.push(`import { ${constant} as part${parts.size} } from './${name}'`)
      members.push(`${JSON.stringify(part)}: part${parts.size}`)
    }
  }
  lines.push(`export const english = { ${members.join()} }`)
  for (const language of Object.keys(languages).filter((one) => one !== 'en'))
    lines.push(`export { default as ${language} } from './text/${language}/all.ts'`)
  const outfile = join(folder, 'catalogue.mjs')
  await build({
    stdin: { contents: lines.join('\n'), resolveDir: root, loader: 'ts' },
    outfile,
    bundle: true,
    format: 'esm',
    loader: { '.css': 'empty' },
    jsx: 'automatic',
    jsxImportSource: 'preact',
    logLevel: 'error',
  })
  return import(pathToFileURL(outfile).href)
}

/** Values for placeholders. Every language formats them in the same way. */
const values = [21, 32, 43, 54]
const forms: readonly ((value: number) => unknown)[] = [Number, String, (value) => [String(value)]]
type Placed = (...given: unknown[]) => string
/**
 * Calls all functions with the first type of argument that all of them accept. Returns the
 * placeholders that each function uses.
 */
function placeholders(functions: readonly Placed[]): readonly string[] {
  for (const form of forms)
    try {
      return functions.map((text) => {
        const shown = text(...values.map(form))
        return values.filter((value) => shown.includes(String(value))).join()
      })
    } catch {
      // The functions expect another type of argument.
    }
  // Some functions take a list first and then numbers, such as a list of names and their count.
  return functions.map((text) => {
    const shown = text(['21'], ...values.slice(1))
    return values.filter((value) => shown.includes(String(value))).join()
  })
}

t.test('every language has every text with the same placeholders', async (t) => {
  const { english, ...others } = await catalogue(t.testdir())
  t.ok(Object.keys(english).length > 35)
  t.strictSame(
    Object.keys(others),
    Object.keys(languages).filter((one) => one !== 'en'),
  )
  for (const [language, translated] of Object.entries(others)) {
    t.strictSame(Object.keys(translated).sort(), Object.keys(english).sort(), 'the parts')
    const faults: string[] = []
    for (const [part, texts] of Object.entries(english)) {
      const own = translated[part] ?? {}
      for (const name of new Set([...Object.keys(texts), ...Object.keys(own)])) {
        const [text, other] = [texts[name], own[name]]
        if (typeof text === 'function' && typeof other === 'function') {
          const [a, b] = placeholders([text as Placed, other as Placed])
          if (a !== b) faults.push(`${part}.${name} has the placeholders ${b}, not ${a}`)
        } else if (typeof text !== typeof other) faults.push(`${part}.${name} is ${typeof other}`)
        else if (other === '' && text !== '') faults.push(`${part}.${name} is empty`)
      }
    }
    t.strictSame(faults, [], language)
  }
})

t.test('the language is the chosen one, else the first known one of the browser', async (t) => {
  t.strictSame(languageOf(undefined, ['fr-FR', 'de-AT', 'en']), {
    language: 'de',
    locale: 'de-AT',
  })
  t.strictSame(languageOf('en', ['de-AT', 'en-GB']), { language: 'en', locale: 'en-GB' })
  t.strictSame(languageOf('de', ['en-US']), { language: 'de', locale: 'de' })
  t.strictSame(languageOf('constructor', []), { language: 'en', locale: 'en' })
})

t.test('nouns follow the plural rules', async (t) => {
  t.equal(plural(1, 'run', 'runs'), '1 run')
  t.equal(plural(2000, 'run', 'runs'), '2,000 runs')
  t.equal(plural(2, 'run', 'runs', { other: 'many runs' }), '2 many runs')
})
