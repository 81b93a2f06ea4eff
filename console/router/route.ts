/** The declaration of a page in the route table. */
import type { ComponentType } from 'preact'
import type { IconName } from '../design/icons.tsx'
import type { PageProps } from '../shell/page.tsx'

/** A module with a page. */
interface PageModule {
  readonly default: ComponentType<PageProps>
}
/** A page. */
export interface Route {
  /** Pattern of the URL path. Pages of a project begin with `/p/:project`. */
  readonly path: string
  readonly load: () => Promise<PageModule>
  /**
   * Sends the first queries of the page. Called when the console is opened at this page, so that
   * the queries run while the module of the page is loaded.
   */
  readonly early?: (params: Readonly<Record<string, string>>, query: URLSearchParams) => void
  /**
   * Permission that the page requires, such as `project.view`. It is required in the project or, if
   * the page does not belong to a project, in the organization.
   */
  readonly permission?: string
  /** The entry in the navigation. */
  readonly entry?: {
    readonly group: string
    readonly label: string
    readonly icon: IconName
    /** Shortcut that opens the page, such as `g r`. */
    readonly keys?: string
  }
}

/** Returns whether a page with this path or pattern belongs to a project. */
export const isOfProject = (path: string): boolean => path.startsWith('/p/')
