/** The pages of the site and their groups in the sidebar. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

interface Group {
  readonly title: string
  readonly pages: readonly { readonly page: string; readonly text: string }[]
}

/** The page that lists the pages in groups: a table of links below each heading. */
const INDEX = 'docs/README.md'
const FRONT = [INDEX, 'README.md']

/** Returns the path of a page on the site: a README.md becomes the index of its folder. */
export const placeOf = (path: string): string => path.replace(/(^|\/)README\.md$/, '$1index.md')

/** Returns the Markdown files of the site as paths relative to the project. */
export function pagesOf(root: string): readonly string[] {
  const below = (folder: string): string[] =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = posix.join(folder, entry.name)
      if (entry.isFile()) return path.endsWith('.md') ? [path] : []
      if (folder === '.' && !['docs', 'bench'].includes(entry.name)) return []
      return entry.name === 'node_modules' || entry.name.startsWith('.') ? [] : below(path)
    })
  return below('.').sort()
}

/** Returns the first heading of a page. */
const titleOf = (root: string, page: string): string =>
  /^# +(.+)$/m.exec(readFileSync(join(root, page), 'utf8'))?.[1]?.replaceAll('`', '') ?? page

/**
 * Returns the groups of the sidebar: the groups of the index page, followed by two groups of pages
 * that the index page does not list (other pages, and decision records).
 */
export function groupsOf(root: string, pages: readonly string[]): readonly Group[] {
  const text = existsSync(join(root, INDEX)) ? readFileSync(join(root, INDEX), 'utf8') : ''
  const [, ...sections] = text.split(/^## +/m)
  const groups = sections.map((section) => ({
    title: section.split('\n', 1)[0] ?? '',
    pages: [...section.matchAll(/^\| *\[([^\]]+)\]\(([^)#]+\.md)\)/gm)].map(
      ([, text = '', link = '']) => ({ page: posix.join(posix.dirname(INDEX), link), text }),
    ),
  }))
  const listed = new Set([
    ...FRONT,
    ...groups.flatMap((group) => group.pages.map(({ page }) => page)),
  ])
  const others = pages.filter((page) => !listed.has(page))
  const isDecision = (page: string): boolean => page.startsWith('docs/adr/')
  const rest = (title: string, chosen: readonly string[]): Group => ({
    title,
    pages: chosen.map((page) => ({ page, text: titleOf(root, page) })),
  })
  return [
    ...groups,
    rest(
      'Other pages',
      others.filter((page) => !isDecision(page)),
    ),
    rest('Decision records', others.filter(isDecision)),
  ].filter((group) => group.pages.length > 0)
}
