/**
 * Terms that were replaced by standard ones, as the table "Retired terms" of the glossary lists
 * them: the terms, the terms to use instead, and what is still allowed.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Name } from './declared-names.ts'
import { root, type Sources } from './sources.ts'

export interface RetiredTerm {
  /**
   * A term in capitals is refused only in names of constants; a term with a file extension only as
   * the name of a file.
   */
  readonly term: string
  readonly instead: string
  /** The names, files and folders that may contain the term. Paths of folders end with a slash. */
  readonly allowed: readonly string[]
}

const coded = (cell: string): string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)

/**
 * Reads the table of a Markdown text.
 * @throws {Error} when the text has no section "Retired terms" with a table.
 */
export function retiredTermsIn(text: string): RetiredTerm[] {
  const section = /^## Retired terms$([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(text)?.[1] ?? ''
  const terms = section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => {
      const [, retired = '', instead = '', allowed = ''] = line.split('|')
      return coded(retired).map((term) => ({
        term,
        instead: coded(instead).join(', '),
        allowed: coded(allowed),
      }))
    })
  if (terms.length === 0) throw new Error('The text has no table of retired terms.')
  return terms
}

export const retiredTerms = (): RetiredTerm[] =>
  retiredTermsIn(readFileSync(join(root, 'docs/glossary.md'), 'utf8'))

/** The words of a name or text in lower case: `readChunkOf` has the words read, chunk and of. */
const wordsOf = (text: string): string[] =>
  text
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean)

function uses({ kind, text }: Name, term: string): boolean {
  const [bare = '', extension] = term.split('.')
  if (extension !== undefined && kind !== 'file') return false
  if (/^[A-Z]+$/.test(bare) && (kind !== 'declaration' || /[a-z]/.test(text))) return false
  return ` ${wordsOf(text).join(' ')} `.includes(` ${wordsOf(bare).join(' ')} `)
}

const isAllowed = ({ text, file }: Name, { allowed }: RetiredTerm): boolean =>
  allowed.some((one) =>
    one.includes('/') ? file === one || (one.endsWith('/') && file.startsWith(one)) : text === one,
  )

/** The files that contain a retired term anywhere. Only these need to be parsed. */
export function mentioning(sources: Sources, terms: readonly RetiredTerm[]): Sources {
  const words = terms.map(({ term }) => wordsOf(term.replace(/\..*/, '')).join('[^a-z0-9]*'))
  const any = new RegExp(words.join('|'), 'i')
  return new Map([...sources].filter(([file, text]) => any.test(file) || any.test(text)))
}

/** Names that contain a retired term, each with its place and the term to use instead. */
export const retiredNames = (names: readonly Name[], terms: readonly RetiredTerm[]): string[] =>
  names.flatMap((name) =>
    terms
      .filter((retired) => uses(name, retired.term) && !isAllowed(name, retired))
      .map(({ instead }) => `${name.file}:${name.line} ${name.kind} ${name.text}: use ${instead}`),
  )
