//! Edges -> circles.

use std::collections::BTreeMap;

/// Returns the circles: sets of nodes that can all reach each other.
pub fn circles<N: Ord + Copy>(edges: &[(N, N)]) -> Vec<Vec<N>> {
    let mut after: BTreeMap<N, Vec<N>> = BTreeMap::new();
    for &(from, to) in edges {
        after.entry(from).or_default().push(to);
        after.entry(to).or_default();
    }
    let reached: BTreeMap<N, Vec<N>> = after.keys().map(|&node| (node, reach(&after, node))).collect();
    let mut found: Vec<Vec<N>> = Vec::new();
    for (&node, others) in &reached {
        if !others.contains(&node) || found.iter().any(|circle| circle.contains(&node)) {
            continue;
        }
        found.push(others.iter().copied().filter(|other| reached[other].contains(&node)).collect());
    }
    found
}

/// Returns the nodes reached from a node by one edge or more.
fn reach<N: Ord + Copy>(after: &BTreeMap<N, Vec<N>>, node: N) -> Vec<N> {
    let mut reached = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        for &next in &after[&node] {
            if !reached.contains(&next) {
                reached.push(next);
                open.push(next);
            }
        }
    }
    reached.sort();
    reached
}

#[test]
fn circles_are_found_of_any_length() {
    assert!(circles(&[(1, 2), (2, 3), (1, 3)]).is_empty());
    assert_eq!(circles(&[(1, 1)]), [[1]]);
    assert_eq!(circles(&[(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 4), (6, 1)]), [vec![1, 2, 3], vec![4, 5]]);
}
