/** What a row of the table of pages declares. */
import type { ComponentType } from 'preact'
import type { IconName } from '../design/icons.tsx'
import type { PageProps } from '../shell/page.tsx'

/** A module with a page. */
interface PageModule {
  readonly default: ComponentType<PageProps>
}
/** A page. */
export interface Route {
  /** Pattern of the address. Pages of a project begin with `/p/:project`. */
  readonly path: string
  readonly load: () => Promise<PageModule>
  /**
   * Calls the queries whose answers the page shows first. It is used when the console begins with
   * this page, so that they run while the page is loaded.
   */
  readonly early?: (params: Readonly<Record<string, string>>, query: URLSearchParams) => void
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
