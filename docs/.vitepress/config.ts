/**
 * Configures the documentation as a static site. Its pages are the Markdown files of docs/, bench/
 * and the root folder, at the same relative paths, so links work as in the repository. Every
 * README.md is the index page of its folder.
 */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'
import { anchorOf } from '../../test/docs/anchors.ts'
import { addLinkRule, addTextRules } from './markdown.ts'
import { groupsOf, pagesOf, placeOf } from './pages.ts'

const root = join(import.meta.dirname, '../..')
const pages = pagesOf(root)
/** Linked files that are not pages. They are copied into the site. */
const linked = new Set<string>()

export default defineConfig({
  title: 'Baton',
  description: 'Self-hosted work coordination for mixed teams of humans, systems and AI agents.',
  srcDir: root,
  outDir: join(import.meta.dirname, 'dist'),
  cacheDir: join(import.meta.dirname, 'cache'),
  srcExclude: ['!(docs|bench)/**/*'],
  rewrites: (page) => placeOf(page),
  markdown: {
    anchor: { slugify: anchorOf },
    config: (md) => {
      addTextRules(md)
      addLinkRule(md, root, pages, (file) => void linked.add(file))
    },
  },
  themeConfig: {
    nav: [
      { text: 'Start', link: '/' },
      { text: 'Documentation', link: '/docs/' },
    ],
    sidebar: groupsOf(root, pages).map(({ title, pages }) => ({
      text: title,
      items: pages.map(({ page, text }) => ({
        text,
        link: `/${placeOf(page).replace(/(index)?\.md$/, '')}`,
      })),
    })),
    outline: [2, 3],
    search: { provider: 'local' },
  },
  buildEnd: ({ outDir }) => {
    for (const file of linked) cpSync(join(root, file), join(outDir, file), { recursive: true })
  },
})
