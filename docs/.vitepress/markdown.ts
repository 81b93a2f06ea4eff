/**
 * Renders the Markdown of the repository, which is written for GitHub. VitePress compiles a page as
 * a Vue template, so braces and angle brackets in the text are escaped.
 */
import { existsSync, statSync } from 'node:fs'
import { join, posix, relative } from 'node:path'
import type { MarkdownRenderer } from 'vitepress'
import { placeOf } from './pages.ts'

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('{', '&#123;')

/** Removes comments and keeps anchors. Other HTML is shown as text. */
function html(text: string): string {
  if (/^<!--[\s\S]*-->\s*$/.test(text)) return ''
  return /^(<a id="[\w-]+">|<\/a>)$/.test(text) ? text : escaped(text)
}

/** Makes the renderer escape text, inline code and HTML. */
export function addTextRules({ renderer }: MarkdownRenderer): void {
  const { rules } = renderer
  const text = (content = ''): string => escaped(content)
  rules['text'] = (tokens, index) => text(tokens[index]?.content)
  rules['code_inline'] = (tokens, index) => `<code>${text(tokens[index]?.content)}</code>`
  rules['html_block'] = (tokens, index) => html(tokens[index]?.content ?? '')
  rules['html_inline'] = (tokens, index) => {
    const token = tokens[index]
    return token?.meta?.isPermalinkSymbol ? token.content : html(token?.content ?? '')
  }
}

/**
 * Returns the target of a relative link, and the link to that target on the site. A link to a
 * folder without a README.md leads to the folder's first page.
 * @throws Error when the target does not exist.
 */
function siteLink(root: string, pages: readonly string[], page: string, href: string) {
  const [path = '', anchor] = href.split('#')
  const folder = posix.dirname(page)
  let target = posix.normalize(posix.join(folder, decodeURI(path)))
  const found = statSync(join(root, target), { throwIfNoEntry: false })
  if (!found) throw new Error(`${page}: dead link ${href}`)
  if (found.isDirectory()) {
    const index = posix.join(target, 'README.md')
    const inside = pages.filter((name) => posix.dirname(name) === posix.normalize(`${target}/.`))
    target = existsSync(join(root, index)) ? index : (inside[0] ?? target)
  }
  const place = posix.relative(folder, placeOf(target))
  return { target, href: `./${place}${anchor === undefined ? '' : `#${anchor}`}` }
}

/**
 * Rewrites relative links before VitePress renders and checks them.
 * @param pages all pages of the site.
 * @param linkedFile called for each linked file that is not a page.
 */
export function addLinkRule(
  { renderer }: MarkdownRenderer,
  root: string,
  pages: readonly string[],
  linkedFile: (path: string) => void,
): void {
  const { rules } = renderer
  const render = rules['link_open']
  rules['link_open'] = (tokens, index, options, env, self) => {
    const token = tokens[index]
    const written = token?.attrGet('href') ?? ''
    if (token && !/^([a-z]+:|#|\/)/i.test(written)) {
      const { target, href } = siteLink(
        root,
        pages,
        relative(root, env.realPath ?? env.path),
        written,
      )
      token.attrSet('href', href)
      if (!pages.includes(target)) {
        // VitePress neither checks nor intercepts a link with a `target` attribute.
        token.attrSet('target', '_self')
        linkedFile(target)
      }
    }
    return render?.(tokens, index, options, env, self) ?? self.renderToken(tokens, index, options)
  }
}
