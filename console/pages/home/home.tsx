/** The home page of a project: what runs, what waits, what has failed. */
import { Page, type PageProps } from '../../shell/page.tsx'

export default function HomePage({ params }: PageProps) {
  return (
    <Page title="Home">
      <p class="user-text">{params['project']}</p>
    </Page>
  )
}
