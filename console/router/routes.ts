/**
 * The table of pages: address, module, place in the navigation, and the permission without which
 * the page is not offered. A page is added by a row here.
 */
import type { ComponentType } from 'preact'
import type { IconName } from '../design/icons.tsx'
import type { PageProps } from '../shell/page.tsx'
import { shellText as text } from '../shell/text.ts'

/** A module with a page. */
interface PageModule {
  readonly default: ComponentType<PageProps>
}
/** A page. */
export interface Route {
  /** Pattern of the address. Pages of a project begin with `/p/:project`. */
  readonly path: string
  readonly load: () => Promise<PageModule>
  /** Permission in the project, such as `project.view`. */
  readonly permission?: string
  /** The entry in the navigation. */
  readonly entry?: {
    readonly group: string
    readonly label: string
    readonly icon: IconName
    /** Keys that open the page, such as `g r`. */
    readonly keys?: string
  }
}

const P = '/p/:project'
const work = text.groupWork
/** All pages, in the order of the navigation. */
export const routes: readonly Route[] = [
  {
    path: P,
    load: () => import('../pages/home/home.tsx'),
    permission: 'project.view',
    entry: { group: work, label: text.home, icon: 'home', keys: 'g h' },
  },
]

/** The first parts of the addresses of the console. All other addresses belong to the service. */
const OURS = /^\/($|p\/|sign-in$|account($|\/)|organization($|\/))/
/** Returns whether an address is one of the console. */
export const isConsolePath = (path: string): boolean => OURS.test(path)
