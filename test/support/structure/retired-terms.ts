/**
 * Finds names that contain retired terms, which were replaced by standard ones. The table "Retired
 * terms" of the glossary lists the terms, the terms to use instead, and what is still allowed.
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

/** Splits a name or text into lower-case words: `readChunkOf` becomes read, chunk and of. */
const wordsOf = (text: string): string[] =>
  text
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean)

/** Joins the words of a text with single spaces around them, so that whole words can be found. */
const spaced = (text: string): string => ` ${wordsOf(text).join(' ')} `
/** Returns the terms in their spaced form, without extensions. */
const spacedTerms = (terms: readonly RetiredTerm[]): string[] =>
  terms.map(({ term }) => spaced(term.replace(/\..*/, '')))

/** Whether a term is refused in this kind of name. */
function concerns(term: string, { kind, text }: Name): boolean {
  const [bare = '', extension] = term.split('.')
  if (extension !== undefined && kind !== 'file') return false
  return !/^[A-Z]+$/.test(bare) || (kind === 'declaration' && !/[a-z]/.test(text))
}

const isAllowed = ({ text, file }: Name, { allowed }: RetiredTerm): boolean =>
  allowed.some((one) =>
    one.includes('/') ? file === one || (one.endsWith('/') && file.startsWith(one)) : text === one,
  )

/**
 * Returns the files whose path or text contains a retired term anywhere. Only these need to be
 * parsed.
 */
export function mentioning(sources: Sources, terms: readonly RetiredTerm[]): Sources {
  const words = terms.map(({ term }) => wordsOf(term.replace(/\..*/, '')).join('[^a-z0-9]*'))
  const any = new RegExp(words.join('|'), 'i')
  return new Map([...sources].filter(([file, text]) => any.test(file) || any.test(text)))
}

/** Describes the names that contain a retired term, each with its place and the replacement. */
export function retiredNames(names: readonly Name[], terms: readonly RetiredTerm[]): string[] {
  const searched = spacedTerms(terms)
  return names.flatMap((name) => {
    const words = spaced(name.text)
    return terms
      .filter(
        (retired, index) =>
          words.includes(searched[index] ?? '') &&
          concerns(retired.term, name) &&
          !isAllowed(name, retired),
      )
      .map(({ instead }) => `${name.file}:${name.line} ${name.kind} ${name.text}: use ${instead}`)
  })
}
